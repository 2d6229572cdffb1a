// A quarter of the new seeds of a run: nothing that was promised is broken (ARCHITECTURE, "Invariants").
import { liveQuarter } from './suite.ts'

liveQuarter(0)
