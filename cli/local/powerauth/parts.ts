// What every part of an import works with.
import type { InstallationKeys } from '../../../src/domain/installation-keys.ts'
import type { RecordKeys } from '../../../src/domain/secrets/record-keys.ts'
import type { Platform } from '../../../src/lib/platform.ts'
import type { Pool } from '../../../src/storage/database.ts'
import type { Config } from '../../../src/config-shape.ts'
import type { OpenRecord } from './records.ts'
import type { Recorder } from './report.ts'
import type { Source } from './source.ts'

/** What is read from. */
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

/** What is written to. */
export interface TargetParts {
  readonly db: Pool
  readonly platform: Platform
  readonly recordKeys: RecordKeys
  readonly installationKeys: InstallationKeys
  readonly settings: Pick<Config, 'webhookAllowHttp' | 'webhookAllowPrivateAddresses'>
}

export type ImportParts = SourceParts & TargetParts

/** A JSON list of texts, as the reference keeps flags, roles and attributes; none of null. Undefined for anything else. */
export function parseTexts(json: string | null): readonly string[] | undefined {
  if (json === null || json.trim() === '') return []
  const value = parseJson(json)
  return Array.isArray(value) && value.every((item) => typeof item === 'string') ? value : undefined
}

/** Undefined for what is not JSON. */
export function parseJson(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}
