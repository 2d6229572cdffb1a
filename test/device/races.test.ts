// The races of the device API and the registration API on one process (README, decisions 1 to 3).
import { describeRaces } from '../helpers/races.ts'
import { startWorld } from '../helpers/world.ts'

describeRaces('one process', startWorld)
