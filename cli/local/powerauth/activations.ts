// Activations of protocol 3, each with its history and its tokens, all at once or not at all.
import { hashActivationCode, places } from '../../../src/domain/secrets/secrets.ts'
import { composeEventData } from '../../../src/domain/audit/audit.ts'
import { parseBase64 } from '../../../src/lib/base64.ts'
import { isIdentifier } from '../../../src/lib/identifier.ts'
import { activationFingerprint } from '../../../src/protocol/v3/fingerprint.ts'
import { agreeMasterSecret } from '../../../src/protocol/v3/key-schedule.ts'
import {
  findExistingActivations,
  type ImportedActivation,
  type ImportedHistory,
  type ImportedToken,
  insertImportedActivations,
  insertImportedHistory,
  insertImportedTokens,
  listLiveActivations,
} from '../../../src/storage/activation/import.ts'
import { inTransaction } from '../../../src/storage/database.ts'
import { type ImportParts, parseTexts } from './parts.ts'
import { openKeyPair, type OpenedKeyPair, readPoint } from './records.ts'
import type { SourceActivation, SourceHistory, SourceToken } from './source.ts'

/** Takes all activations of the applications that were taken, some hundred at a time. */
export async function importActivations(parts: ImportParts, applications: ReadonlySet<string>): Promise<void> {
  const { source, record } = parts
  const total = await source.countActivations()
  record.found('activation', total)
  let saidAt = performance.now()
  let done = 0
  let after = ''
  for (;;) {
    const batch = await source.activations(after, BATCH_ROWS)
    await importBatch(parts, applications, batch)
    done += batch.length
    const last = batch.at(-1)
    if (last === undefined || batch.length < BATCH_ROWS) return
    after = last.activationId
    if (performance.now() - saidAt < PROGRESS_MS) continue
    saidAt = performance.now()
    parts.note(`${done} of ${total} activations`)
  }
}

/** The server's key pair of an activation; undefined when it cannot be opened. */
export function openServerKeyPair(
  { openRecord }: Pick<ImportParts, 'openRecord'>,
  row: SourceActivation,
): OpenedKeyPair | undefined {
  const stored = parseBase64(row.serverPrivateKey)
  const number = stored && openRecord(row.encryption, stored, [row.userId, row.activationId])
  return number && openKeyPair(number, row.serverPublicKey)
}

async function importBatch(
  parts: ImportParts,
  applications: ReadonlySet<string>,
  batch: readonly SourceActivation[],
): Promise<void> {
  const { db, source, record } = parts
  const ids = batch.map(({ activationId }) => activationId)
  const existing = await findExistingActivations(db, ids)
  record.alreadyThere('activation', existing.size)
  const fresh = batch.filter(({ activationId }) => !existing.has(activationId))
  const live = new Set(
    (await listLiveActivations(db, [...new Set(fresh.map(({ userId }) => userId))])).map(({ applicationId, userId }) =>
      JSON.stringify([applicationId, userId]),
    ),
  )
  const rows: ImportedActivation[] = []
  for (const row of fresh) {
    const refusal = findRefusal(parts, applications, row) ?? (isTakenUser(live, row) ? OTHER_PHONE : undefined)
    const converted = refusal ?? convert(parts, row)
    if (typeof converted === 'string')
      record.leaveOut('activation', row.activationId, converted, row.preferred === null ? undefined : row.preferred)
    else rows.push(converted)
  }
  const wanted = rows.map(({ activationId }) => activationId)
  const tokens = await convertTokens(parts, rows, await source.tokens(wanted))
  if (parts.isDryRun) {
    record.imported('activation', rows.length)
    record.imported('token', tokens.length)
    return
  }
  const history = convertHistory(rows, await source.history(wanted))
  if (rows.length > 0) await store(parts, rows, history, tokens)
}

async function store(
  { db, record }: ImportParts,
  rows: readonly ImportedActivation[],
  history: readonly ImportedHistory[],
  tokens: readonly ImportedToken[],
): Promise<void> {
  const { inserted, storedTokens } = await inTransaction(db, async (tx) => {
    const activations = await insertImportedActivations(tx, rows)
    const isOfInserted = ({ activationId }: { activationId: string }) => activations.has(activationId)
    await insertImportedHistory(tx, history.filter(isOfInserted))
    return { inserted: activations, storedTokens: await insertImportedTokens(tx, tokens.filter(isOfInserted)) }
  })
  record.imported('activation', inserted.size)
  record.imported('token', storedTokens.size)
  for (const { activationId } of rows) if (!inserted.has(activationId)) record.leaveOut('activation', activationId, OTHER_PHONE)
  for (const { tokenId } of tokens)
    if (!storedTokens.has(tokenId)) record.leaveOut('token', tokenId, 'its activation is left out, or its id is there already')
}

const isTakenUser = (live: ReadonlySet<string>, { applicationId, userId, status }: SourceActivation): boolean =>
  STATES[status] !== 'REMOVED' && live.has(JSON.stringify([applicationId, userId]))

/** Why an activation is left out, as far as its plain columns tell. */
function findRefusal(
  { isLiveOnly, platform }: ImportParts,
  applications: ReadonlySet<string>,
  row: SourceActivation,
): string | undefined {
  const state = STATES[row.status]
  if (!applications.has(row.applicationId)) return 'its application is left out'
  if (row.protocol !== 'powerauth') return `its protocol is ${row.protocol}`
  if (state === undefined) return `its state ${row.status} is not known`
  if (state === 'CREATED') return 'no phone has used its code yet: the bank makes a new one'
  if (state === 'REMOVED' && isLiveOnly) return 'it is removed, and --live-only was given'
  if (row.devicePublicKey === null || row.ctrData === null) return 'it has never exchanged keys'
  if (row.version !== ACTIVATION_VERSION) return `it is of protocol ${row.version ?? 'unknown'}`
  if (!isIdentifier(row.userId)) return 'its user id is blank, or has control characters'
  if (state === 'PENDING_COMMIT' && row.hasOtp) return 'it waits for a commit with an OTP'
  if (state === 'PENDING_COMMIT' && row.expiresAt.getTime() <= platform.now()) return 'it waited for its commit too long'
  if (row.preferred !== null) return 'the user has another live phone in this application'
  return undefined
}

/** The row, or why it is left out. */
function convert(parts: ImportParts, row: SourceActivation): ImportedActivation | string {
  const { recordKeys, installationKeys, platform } = parts
  const { activationId, applicationId, userId } = row
  const state = STATES[row.status]
  const flags = parseTexts(row.flags)
  const pair = openServerKeyPair(parts, row)
  const devicePublicKey = readPoint(row.devicePublicKey ?? '')
  const ctrData = parseBase64(row.ctrData ?? '', CTR_DATA_BYTES)
  if (state === undefined || state === 'CREATED') throw new TypeError(`an activation in state ${row.status} was not left out`)
  if (pair === undefined) return 'its server key cannot be opened, or is not the private half of its public key'
  const masterSecret = devicePublicKey && agreeMasterSecret(pair.privateKey, devicePublicKey)
  if (devicePublicKey === undefined || masterSecret === undefined) return 'its device key is not a point of P-256'
  if (ctrData === undefined) return 'its counter data is not Base64 of 16 bytes'
  if (flags === undefined || flags.some((flag) => flag === '' || /[\s,]/.test(flag))) return 'its flags are not a list of names'
  if (row.maxFailedAttempts < 1 || row.counter < 0 || row.failedAttempts < 0) return 'one of its counts is out of range'
  return {
    activationId,
    applicationId,
    userId,
    state,
    protocolVersion: ACTIVATION_VERSION,
    // The code was used long ago; where it is gone, nobody can know one with this hash.
    activationCodeHash:
      row.activationCode === null
        ? platform.randomBytes(CODE_HASH_BYTES)
        : hashActivationCode(installationKeys.codeLookup, row.activationCode),
    serverPublicKey: pair.publicKey,
    serverPrivateKey: recordKeys.seal(places.serverPrivateKey(row), pair.pkcs8),
    devicePublicKey,
    activationFingerprint: activationFingerprint(devicePublicKey, activationId, pair.publicKey),
    masterSecret: recordKeys.seal(places.masterSecret(row), masterSecret),
    ctrData: recordKeys.seal(places.ctrData(activationId), ctrData),
    counter: row.counter,
    failedAttempts: row.failedAttempts,
    maxFailedAttempts: row.maxFailedAttempts,
    blockedReason: state === 'BLOCKED' ? row.blockedReason : null,
    name: row.name,
    platform: row.platform?.toLowerCase() || 'unknown',
    deviceInfo: row.deviceInfo,
    extras: row.extras,
    externalId: row.externalId,
    createdAt: row.createdAt,
    expiresAt: row.expiresAt,
    lastUsedAt: row.lastUsedAt,
    flags: flags.join(','),
    commitPhase: row.commitPhase === 1 ? 'ON_KEY_EXCHANGE' : 'ON_COMMIT',
    eventType: 'registration_imported',
    eventData: composeEventData({ state, from: 'PowerAuth server' }),
    at: new Date(platform.now()),
  }
}

async function convertTokens(
  { recordKeys, record }: ImportParts,
  activations: readonly ImportedActivation[],
  tokens: readonly SourceToken[],
): Promise<readonly ImportedToken[]> {
  const owners = new Map(activations.map((activation) => [activation.activationId, activation]))
  record.found('token', tokens.length)
  return tokens.flatMap(({ tokenId, activationId, secret, signatureType, createdAt }) => {
    const factors = signatureType.toUpperCase()
    const bytes = parseBase64(secret, TOKEN_SECRET_BYTES)
    const owner = owners.get(activationId)
    const refusal =
      bytes === undefined
        ? 'its secret is not Base64 of 16 bytes'
        : FACTORS.includes(factors)
          ? (owner === undefined || owner.state === 'REMOVED') && 'its activation is removed'
          : `its factors are ${signatureType}`
    if (bytes !== undefined && owner !== undefined && refusal === false) {
      const tokenSecret = recordKeys.seal(places.tokenSecret({ ...owner, tokenId, factors }), bytes)
      return [{ tokenId, activationId, factors, tokenSecret, createdAt }]
    }
    record.leaveOut('token', tokenId, String(refusal))
    return []
  })
}

/** What the reference wrote down, and a last row that says where it comes from. */
function convertHistory(
  activations: readonly ImportedActivation[],
  history: readonly SourceHistory[],
): readonly ImportedHistory[] {
  const byActivation = Map.groupBy(history, ({ activationId }) => activationId)
  return activations.flatMap(({ activationId, state, at }) => {
    let fromState: string | null = null
    const rows: ImportedHistory[] = (byActivation.get(activationId) ?? []).flatMap(
      ({ status, reason, externalUserId, occurredAt }) => {
        const toState = status === null ? undefined : STATES[status]
        if (toState === undefined) return []
        const row = { activationId, fromState, toState, reason, externalUserId, occurredAt }
        fromState = toState
        return [row]
      },
    )
    return [...rows, { activationId, fromState: state, toState: state, reason: 'IMPORTED', externalUserId: null, occurredAt: at }]
  })
}

const STATES: Readonly<Record<number, 'CREATED' | 'PENDING_COMMIT' | 'ACTIVE' | 'BLOCKED' | 'REMOVED'>> = {
  1: 'CREATED',
  2: 'PENDING_COMMIT',
  3: 'ACTIVE',
  4: 'BLOCKED',
  5: 'REMOVED',
}
const FACTORS: readonly string[] = ['POSSESSION', 'POSSESSION_KNOWLEDGE', 'POSSESSION_BIOMETRY']
const OTHER_PHONE = 'the user has a live registration in pawl already, or its code is there'
/** Of 3.0 to 3.3. */
const ACTIVATION_VERSION = 3
const CTR_DATA_BYTES = 16
const TOKEN_SECRET_BYTES = 16
const CODE_HASH_BYTES = 32
const BATCH_ROWS = 500
const PROGRESS_MS = 5_000
