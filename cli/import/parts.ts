// Defines the parts that every step of an import uses.
import type { InstallationKeys } from '../../src/domain/installation-keys.ts'
import type { RecordKeys } from '../../src/domain/secrets/record-keys.ts'
import { isIdentifier } from '../../src/lib/identifier.ts'
import type { Platform } from '../../src/lib/platform.ts'
import type { Pool } from '../../src/storage/database/database.ts'
import { codeOf } from '../../src/storage/database/postgres-connection.ts'
import type { Config } from '../../src/config/config.ts'
import { explainFault } from '../fault.ts'
import { parseJson } from '../json-argument.ts'
import type { OpenRecord } from './records.ts'
import type { Recorder } from './report.ts'
import type { Source } from './source.ts'

export interface SourceParts {
  readonly source: Source
  readonly openRecord: OpenRecord
  readonly hasMasterDbKey: boolean
  readonly record: Recorder
  readonly isDryRun: boolean
  /** Whether removed activations are left out. */
  readonly isLiveOnly: boolean
  readonly note: (line: string) => void
}

export interface TargetParts {
  readonly db: Pool
  readonly platform: Platform
  readonly recordKeys: RecordKeys
  readonly installationKeys: InstallationKeys
  readonly settings: Pick<Config, 'webhookAllowHttp' | 'webhookAllowPrivateAddresses'>
}

export type ImportParts = SourceParts & TargetParts

/** Whether pawl accepts an id of the reference. It refuses U+FFFD, which stands for bytes that are no text. */
export const isSourceId = (id: string): boolean => isIdentifier(id) && !id.includes('\uFFFD')

/**
 * The database's reason for rows that it refuses: values and references (SQLSTATE 22, 23, 54), and a user who is being erased (40001). Throws every
 * other failure.
 */
export function explainRefusal(error: unknown): string {
  if (/^(22...|23...|40001|54...)$/.test(String(codeOf(error)))) return explainFault(error)
  throw error
}

/** Parses a JSON list of texts: flags, roles and attributes of the reference. Null is an empty list; any other value is undefined. */
export function parseTexts(json: string | null): readonly string[] | undefined {
  if (json === null || json.trim() === '') return []
  const value = parseJson(json)
  return Array.isArray(value) && value.every((item) => typeof item === 'string') ? value : undefined
}

/** The reason to leave out a row whose id cannot be a segment of a URL's path. */
export const NOT_FOR_PATHS = 'no path can have its id'
/** The reason to leave out a row whose id another row has. */
export const SECOND_ROW = 'another row has its id'
/** The reason to leave out a row with a time that `source.ts` returns as null. */
export const BAD_TIME = 'one of its times is none of the years 1971 to 4999'
