// Races of the device API and the registration API, on one server and on two that share a database (v3 §10.5).
import { serverUrl } from '../helpers/app.ts'
import { describeRaces } from '../helpers/races.ts'
import { startSharedWorld, startWorld } from '../helpers/world.ts'

describeRaces('one server', startWorld)

// Only PostgreSQL has room for two.
if (serverUrl() !== undefined) describeRaces('two servers on one database', startSharedWorld)
