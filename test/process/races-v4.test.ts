// Races of protocol 4.0 on one server (v4 §7.4, §7.5, §9, §10). Two processes on one PostgreSQL have them in two-processes.test.ts.
import { describeRacesV4 } from '../helpers/races-v4.ts'
import { startWorld } from '../helpers/world.ts'

describeRacesV4('one server', startWorld)
