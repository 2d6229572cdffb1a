// Every family of v4 vectors and what computes its outputs. The members that a handler gives back are compared with the vector's.
import { v4KeyFamilies } from './v4-keys.ts'
import { v4PrimitiveFamilies } from './v4-primitives.ts'
import { v4RequestFamilies } from './v4-requests.ts'
import { v4TranscriptFamilies } from './v4-transcript.ts'
import type { Members } from './vector.ts'

export type FlatHandler = (vector: Members) => Members | Promise<Members>

export const v4Families: Readonly<Record<string, FlatHandler>> = {
  ...v4PrimitiveFamilies,
  ...v4KeyFamilies,
  ...v4RequestFamilies,
  ...v4TranscriptFamilies,
}
