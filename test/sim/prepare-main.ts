// A process of its own for global-setup.ts, because vitest runs that where a server does not start.
import { readTemplate, testTemplate } from '../helpers/app.ts'
import { prepare } from './prepared.ts'

await prepare(testTemplate(), readTemplate())
