// Reads the values of an application that the mobile utility API answers: its signing key, its pinned certificates, its version rules (utility
// §1, §2). Judges the version of an app by those rules.
import type { KeyObject } from 'node:crypto'
import { ecdsaSign } from '../../crypto/ecdsa.ts'
import { generateKeyPair } from '../../crypto/key.ts'
import { toBase64 } from '../../lib/base64.ts'
import { concat, utf8 } from '../../lib/bytes.ts'
import { findLanguage } from '../../lib/language.ts'
import { createMemory } from '../../lib/memory.ts'
import {
  findPinningKeyPair,
  insertPinningKeyPair,
  listPinnedCertificates,
  type PinnedCertificateRow,
  type PinningKeyPairRow,
} from '../../storage/pinning/pinning.ts'
import {
  listVersionRules,
  listVersionTextsOf,
  type VersionRuleRow,
  type VersionTextRow,
} from '../../storage/pinning/version-rules.ts'
import { type KeyParts, openPrivateKey, places, sealPrivateKey } from '../secrets/secrets.ts'
import type { MobilePlatform } from '../../storage/database/schema.ts'

export interface PinnedApplication {
  /** Uncompressed point, 65 bytes. */
  readonly publicKey: Uint8Array
  /** Opens the key that signs answers. Throws SealedRecordError. */
  readonly openPrivateKey: () => KeyObject
  /** Sorted by domain and expiry, with expired ones. */
  readonly certificates: readonly PinnedCertificateRow[]
  readonly rules: readonly VersionRuleRow[]
  readonly texts: readonly VersionTextRow[]
}

/** Reads applications, and remembers them for two seconds. A change by another process is noticed after that. */
export interface Pinning {
  /** Undefined when the application does not exist. */
  readonly find: (applicationId: string) => Promise<PinnedApplication | undefined>
  /** Forgets this application after a change, or all of them. */
  readonly forget: (applicationId?: string) => void
}

/** Creates the memory of this process. Requests that come while an application is being read wait for the same read. */
export function createPinning(parts: KeyParts): Pinning {
  const clock = () => parts.platform.now()
  const known = createMemory<Promise<PinnedApplication | undefined>>({ max: APPLICATIONS_MAX, ttl: KEPT_MS, clock })
  return {
    async find(applicationId) {
      const entry = known.get(applicationId)
      if (entry) return entry
      const read = readPinnedApplication(parts, applicationId)
      known.set(applicationId, read)
      const dropThis = () => {
        if (known.get(applicationId) === read) known.delete(applicationId)
      }
      const application = await read.catch((error: unknown) => {
        dropThis()
        throw error
      })
      // Unknown names are not remembered, because strangers can invent any number of them.
      if (application === undefined) dropThis()
      return application
    },
    forget: (applicationId) => {
      if (applicationId === undefined) known.clear()
      else known.delete(applicationId)
    },
  }
}

/**
 * Makes the header `X-Cert-Pinning-Signature`: ECDSA with SHA-256 over challenge, `&` and the exact bytes of the body; DER in Base64 (utility §1,
 * "What is signed").
 */
export const signPinningAnswer = (privateKey: KeyObject, challenge: string, body: Uint8Array): string =>
  toBase64(ecdsaSign(privateKey, concat(utf8(`${challenge}&`), body)))

/** Makes the row of a fresh key pair of an application. */
export function createPinningKeyPair({ platform, recordKeys }: Omit<KeyParts, 'db'>, applicationId: string) {
  const pair = generateKeyPair('P-256')
  return {
    applicationId,
    publicKey: pair.publicKey,
    privateKey: sealPrivateKey(recordKeys, places.pinningPrivateKey(applicationId), pair),
    createdAt: new Date(platform.now()),
  }
}

/** Reads the stored values of an application; undefined when the application does not exist. */
export async function readPinnedApplication(parts: KeyParts, applicationId: string): Promise<PinnedApplication | undefined> {
  const { db, recordKeys } = parts
  const pair = await findOrCreateKeyPair(parts, applicationId)
  if (pair === undefined) return undefined
  return {
    publicKey: pair.publicKey,
    openPrivateKey: () => openPrivateKey(recordKeys, places.pinningPrivateKey(applicationId), pair.privateKey),
    certificates: await listPinnedCertificates(db, applicationId),
    rules: await listVersionRules(db, applicationId),
    texts: await listVersionTextsOf(db, applicationId),
  }
}

/**
 * Reads the signing key pair, or makes it for an application of an earlier release. When two requests make one at the same time, both use the
 * one that was stored first.
 */
async function findOrCreateKeyPair(parts: KeyParts, applicationId: string): Promise<PinningKeyPairRow | undefined> {
  const found = await findPinningKeyPair(parts.db, applicationId)
  if (found !== null) return found
  await insertPinningKeyPair(parts.db, createPinningKeyPair(parts, applicationId))
  return (await findPinningKeyPair(parts.db, applicationId)) ?? undefined
}

/** Values that a mobile app sends about itself. */
interface MobileApp {
  /** MAJOR.MINOR.PATCH; a text behind it is ignored. */
  readonly appVersion: string
  /** Starts with the major version: `17.4.1`, or the API level of Android. */
  readonly osVersion: string
  readonly platform: MobilePlatform
}

interface VersionVerdict {
  readonly update: 'NOT_REQUIRED' | 'SUGGESTED' | 'FORCED'
  /** The text in the first of the user's languages that has one, else in English. */
  readonly message?: string
}

/**
 * Judges whether a version of an app is too old for its server (utility §1, optional version check). The rule for the major version of its
 * operating system decides, else the general rule; without a rule every version is accepted. `languages` are the user's language tags, most wanted
 * first; regions are ignored.
 */
export function verifyVersion(
  rules: readonly VersionRuleRow[],
  texts: readonly VersionTextRow[],
  app: MobileApp,
  languages: readonly string[],
): VersionVerdict {
  const ofPlatform = rules.filter(({ platform }) => platform === app.platform)
  const major = Number.parseInt(app.osVersion, 10)
  const rule =
    ofPlatform.find(({ majorOsVersion }) => majorOsVersion === major) ??
    ofPlatform.find(({ majorOsVersion }) => majorOsVersion === null)
  if (rule === undefined) return { update: 'NOT_REQUIRED' }
  const update = isOlder(app.appVersion, rule.requiredVersion)
    ? 'FORCED'
    : isOlder(app.appVersion, rule.suggestedVersion)
      ? 'SUGGESTED'
      : 'NOT_REQUIRED'
  const text = update === 'NOT_REQUIRED' ? undefined : chooseText(texts, rule.messageKey, languages)
  return { update, ...(text !== undefined && { message: text }) }
}

function isOlder(version: string, than: string | null): boolean {
  if (than === null) return false
  const [given, wanted] = [numbersOf(version), numbersOf(than)]
  const at = wanted.findIndex((number, i) => number !== given[i])
  return at !== -1 && (given[at] ?? 0) < (wanted[at] ?? 0)
}

const numbersOf = (version: string): readonly number[] => (/^\d+\.\d+\.\d+/.exec(version)?.[0] ?? '').split('.').map(Number)

function chooseText(texts: readonly VersionTextRow[], key: string | null, tags: readonly string[]): string | undefined {
  const ofKey = texts.filter(({ messageKey }) => messageKey === key)
  const languages = ofKey.map(({ language }) => language)
  for (const tag of [...tags, FALLBACK_LANGUAGE]) {
    const chosen = findLanguage(languages, tag)
    if (chosen !== undefined) return ofKey.find(({ language }) => language === chosen)?.text
  }
  return undefined
}

const KEPT_MS = 2_000
const APPLICATIONS_MAX = 1_000
const FALLBACK_LANGUAGE = 'en'
