// Prepares the database in a process of its own for global-setup.ts, because a server does not start where vitest runs that.
import { readTemplate, testTemplate } from '../helpers/app.ts'
import { prepare } from './prepared.ts'

await prepare(testTemplate(), readTemplate())
