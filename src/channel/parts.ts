// Names the parts that the channel needs from the process. context.ts provides them.
import type { Window } from '../domain/limits/window.ts'
import type { AuthenticationStore } from '../storage/request/authentication.ts'
import type { ExchangeBasisReader } from '../storage/activation/keys.ts'
import type { Pool } from '../storage/database/database.ts'
import type { UniqueValue } from '../storage/activation/unique-values.ts'
import type { Protocol } from '../protocol/protocol.ts'
import type { Decoys } from './secrets.ts'
import type { DomainParts } from '../domain/secrets/secrets.ts'

export interface ChannelSettings {
  /** The number of counter values to try, the stored one included (v3 §9.1). */
  readonly counterLookAhead: number
  /** The window around now for timestamps of 3.2 and newer, in envelopes and tokens (v3 §14). */
  readonly requestWindowSeconds: number
  /** The window around now for timestamps in tokens of 3.0 and 3.1. */
  readonly legacyTokenWindowSeconds: number
  /** The seconds of the first block by failed attempts; 0 for a block without end (cloud §3.4). */
  readonly temporaryBlockSeconds: number
  /** The longest body that a code may cover, in bytes. */
  readonly signedBodyBytesMax: number
}

export interface ChannelParts extends DomainParts {
  readonly db: Pool
  readonly authenticationStore: AuthenticationStore
  readonly readExchangeBasis: ExchangeBasisReader
  /** Stores all values of a request as used, or none of them if one was used before. */
  readonly useUniqueValues: (values: readonly UniqueValue[]) => Promise<boolean>
  readonly settings: ChannelSettings
  readonly protocols: Readonly<Record<Protocol['path'], Protocol>>
  readonly decoys: Decoys
  /** Counts wrong codes of one activation from one source. */
  readonly codeFailures: Window
  /** Counts refused requests of one source. */
  readonly sourceFailures: Window
}
