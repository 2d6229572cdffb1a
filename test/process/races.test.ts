// Races of the device API and the registration API on one server (v3 §10.5). Two processes on one PostgreSQL have them in two-processes.test.ts.
import { describeRaces } from '../helpers/races.ts'
import { startWorld } from '../helpers/world.ts'

describeRaces('one server', startWorld)
