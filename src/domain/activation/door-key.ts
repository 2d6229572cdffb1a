// The key under which a bank may ask the same thing again (cloud §13.4): what is stored of it are two keyed hashes.
import type { KeyObject } from 'node:crypto'
import { sha256 } from '../../crypto/hash.ts'
import { hmac } from '../../crypto/hmac.ts'
import { encodeTexts } from '../secrets/row-mac.ts'

/** Who asks, under which key, and what: member by member, null for one that is absent. */
export interface DoorQuestion {
  readonly username: string
  readonly applicationId: string
  readonly idempotencyKey: string
  readonly request: readonly (string | null)[]
}

/** 32 bytes of HMAC-SHA-256 each: over the credential and its key, and over what was asked as well. */
export interface DoorKey {
  readonly keyHash: Uint8Array
  readonly requestHash: Uint8Array
}

export function hashDoorKey(key: KeyObject, { username, applicationId, idempotencyKey, request }: DoorQuestion): DoorKey {
  const who = [applicationId, username, idempotencyKey]
  return {
    keyHash: hmac(key, encodeTexts(NO_PREFIX, ['key of a door', ...who])),
    requestHash: hmac(key, encodeTexts(NO_PREFIX, ['question at a door', ...who, ...request])),
  }
}

/** What the audit log has of the bytes that a code covers: their number and their SHA-256 in hexadecimal digits, each on a line. */
export const describeCovered = (bytes: Uint8Array): string => `${bytes.length}\n${Buffer.from(sha256(bytes)).toString('hex')}`

const NO_PREFIX = new Uint8Array(0)
