// From version text to the generation of the protocol that serves it. The rows of capabilities are in the generation's own
// versions.ts; nothing else in pawl compares version text.
import type { Protocol } from './protocol.ts'
import { v3 } from './v3/index.ts'
import { VERSIONS as V3_VERSIONS } from './v3/versions.ts'
import { v4 } from './v4/index.ts'
import { VERSIONS as V4_VERSIONS } from './v4/versions.ts'

/** The protocol of a version text; undefined when pawl does not serve it. */
export const protocolOf = (version: string): Protocol | undefined => protocols.get(version)

const protocols: ReadonlyMap<string, Protocol> = new Map<string, Protocol>([
  ...V3_VERSIONS.map((version) => [version, v3] as const),
  ...V4_VERSIONS.map((version) => [version, v4] as const),
])
