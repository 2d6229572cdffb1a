// One half of the new seeds of a run: nothing that was promised is broken (ARCHITECTURE, "Invariants").
import { liveHalf } from './suite.ts'

liveHalf(0)
