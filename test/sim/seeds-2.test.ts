// Runs a quarter of the new seeds: no promise of an answer is broken (ARCHITECTURE, "Invariants").
import { liveQuarter } from './suite.ts'

liveQuarter(1)
