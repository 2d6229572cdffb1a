// A thread of threads.ts.
import { answerJobs } from '../lib/threads.ts'
import { HEAVY } from './heavy.ts'

answerJobs(HEAVY)
