// Makes and checks the MAC of a row. It shows whether somebody with access to the database changed a column on which a decision depends.
//
//   MAC = HMAC-SHA-256(key, texts(table, field, field, ...))
//
// Each text has its length in front, so that no two rows have the same encoding. An earlier state of a row is as authentic as the present one:
// docs/SECURITY-MODEL.md says what follows from that.
import type { KeyObject } from 'node:crypto'
import { hmac } from '../../crypto/hash.ts'
import { equalConstantTime } from '../../lib/bytes.ts'

/**
 * The columns of one row on which decisions depend. `fields` are the primary key and the columns, always in the same order. Bytes are Base64 or
 * hexadecimal, times milliseconds since 1970.
 */
export interface DecidingRow {
  readonly table: string
  readonly fields: readonly (string | null)[]
}

/** The MAC of a row, 32 bytes, to store beside it. */
export const authenticateRow = (key: KeyObject, { table, fields }: DecidingRow): Uint8Array =>
  hmac(key, encodeTexts(NO_PREFIX, [table, ...fields]))

/** Whether a row is unchanged since pawl wrote it; false without a MAC. */
export const isRowAuthentic = (key: KeyObject, row: DecidingRow, mac: Uint8Array | null): boolean =>
  mac !== null && equalConstantTime(authenticateRow(key, row), mac)

/**
 * Encodes texts: first `prefix`, whose length is fixed for one key, then each text as its length in 4 bytes and its UTF-8 bytes. Null is encoded as
 * a length that no text has.
 */
export function encodeTexts(prefix: Uint8Array, texts: readonly (string | null)[]): Uint8Array {
  let length = prefix.length
  for (const text of texts) length += 4 + (text === null ? 0 : Buffer.byteLength(text))
  const out = Buffer.allocUnsafe(length)
  out.set(prefix)
  let at = prefix.length
  for (const text of texts) {
    const size = text === null ? 0 : out.write(text, at + 4)
    out.writeUInt32BE(text === null ? NULL_LENGTH : size, at)
    at += 4 + size
  }
  return out
}

const NO_PREFIX = new Uint8Array(0)
const NULL_LENGTH = 0xffff_ffff
