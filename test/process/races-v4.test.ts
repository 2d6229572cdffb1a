// Races of protocol 4.0, on one server and on two that share a database (v4 §7.4, §7.5, §9, §10).
import { serverUrl } from '../helpers/app.ts'
import { describeRacesV4 } from '../helpers/races-v4.ts'
import { startSharedWorld, startWorld } from '../helpers/world.ts'

describeRacesV4('one server', startWorld)

// Only PostgreSQL has room for two.
if (serverUrl() !== undefined) describeRacesV4('two servers on one database', startSharedWorld)
