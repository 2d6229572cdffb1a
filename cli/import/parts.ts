// The parts that every step of an import uses.
import type { InstallationKeys } from '../../src/domain/installation-keys.ts'
import type { RecordKeys } from '../../src/domain/secrets/record-keys.ts'
import { isIdentifier } from '../../src/lib/identifier.ts'
import type { Platform } from '../../src/lib/platform.ts'
import type { Pool } from '../../src/storage/database/database.ts'
import { codeOf } from '../../src/storage/database/postgres-connection.ts'
import type { Config } from '../../src/config/config.ts'
import { explainFault } from '../fault.ts'
import type { OpenRecord } from './records.ts'
import type { Recorder } from './report.ts'
import type { Source } from './source.ts'

/** The source of an import. */
export interface SourceParts {
  readonly source: Source
  readonly openRecord: OpenRecord
  readonly hasMasterDbKey: boolean
  readonly record: Recorder
  /** Nothing is written. */
  readonly isDryRun: boolean
  /** Removed activations are left out. */
  readonly isLiveOnly: boolean
  /** A line for who waits. */
  readonly note: (line: string) => void
}

/** The target of an import. */
export interface TargetParts {
  readonly db: Pool
  readonly platform: Platform
  readonly recordKeys: RecordKeys
  readonly installationKeys: InstallationKeys
  readonly settings: Pick<Config, 'webhookAllowHttp' | 'webhookAllowPrivateAddresses'>
}

export type ImportParts = SourceParts & TargetParts

/** Whether an id of the reference is one here: U+FFFD stands for bytes that had no meaning. */
export const isSourceId = (id: string): boolean => isIdentifier(id) && !id.includes('\uFFFD')

/**
 * The database's reason for rows that it refuses: values and references (SQLSTATE 22, 23, 54), and temporary refusals of triggers (40).
 * Undefined for every other failure.
 */
export function explainRefusal(error: unknown): string | undefined {
  return /^(22|23|40|54)...$/.test(String(codeOf(error))) ? explainFault(error) : undefined
}

/** A JSON list of texts, as the reference keeps flags, roles and attributes; none of null. Undefined for anything else. */
export function parseTexts(json: string | null): readonly string[] | undefined {
  if (json === null || json.trim() === '') return []
  const value = parseJson(json)
  return Array.isArray(value) && value.every((item) => typeof item === 'string') ? value : undefined
}

/** Parses JSON; undefined for other text. */
export function parseJson(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}

/** Why a row is left out that calls would have to name in their path. */
export const NOT_FOR_PATHS = 'no path can have its id'
/** Why a row is left out whose id another one has. */
export const SECOND_ROW = 'another row has its id'
/** Why a row is left out that has a time of which `source.ts` gives none. */
export const BAD_TIME = 'one of its times is none of the years 1971 to 4999'
