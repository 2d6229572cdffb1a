// Imports activations of protocol 3, each with its history and its tokens in one transaction.
import { hashActivationCode, places } from '../../src/domain/secrets/secrets.ts'
import { composeEventData } from '../../src/domain/audit/audit.ts'
import { parseBase64 } from '../../src/lib/base64.ts'
import { isIdentifier } from '../../src/lib/identifier.ts'
import { parseUuid } from '../../src/protocol/wire/members.ts'
import { activationFingerprint } from '../../src/protocol/v3/fingerprint.ts'
import { agreeMasterSecret } from '../../src/protocol/v3/key-schedule.ts'
import {
  findExistingActivations,
  findExistingTokens,
  type ImportedActivation,
  type ImportedHistory,
  type ImportedToken,
  insertImportedActivations,
  insertImportedHistory,
  insertImportedTokens,
  listLiveActivations,
} from '../../src/storage/activation/import.ts'
import { listApplications } from '../../src/storage/application/applications.ts'
import { inTransaction, isDeadlock } from '../../src/storage/database/database.ts'
import { tellNowAndThen } from '../progress.ts'
import type { TakenApplications } from './applications.ts'
import { BAD_TIME, explainRefusal, type ImportParts, isSourceId, parseTexts, SECOND_ROW } from './parts.ts'
import { openKeyPair, type OpenedKeyPair, readPoint } from './records.ts'
import type { Kind } from './report.ts'
import type { SourceActivation, SourceHistory, SourceToken } from './source.ts'
import { convertToken, countTokens } from './tokens.ts'

/** Imports all activations of the imported applications, in batches. */
export async function importActivations(parts: ImportParts, applications: TakenApplications): Promise<void> {
  const { source, record } = parts
  const total = await source.countActivations()
  record.found('activation', total)
  record.found('token', await source.countTokens())
  for (const tokenId of await source.lostTokens()) record.leaveOut('token', tokenId, 'its activation is missing')
  const withoutSeconds = createFilter(parts, 'activation', await source.repeated('activations'))
  const withoutSecondTokens = createFilter(parts, 'token', await source.repeated('tokens'))
  const several = new Set(
    (await listApplications(parts.db)).filter(({ isMultiDevice }) => isMultiDevice).map(({ applicationId }) => applicationId),
  )
  let chosen = new Map<string, string>()
  const tell = tellNowAndThen(parts.note)
  let done = 0
  for await (const batch of source.activations(BATCH_ROWS)) {
    const rows = withoutSeconds(batch, ({ activationId }) => activationId)
    const tokens = await source.tokens(rows.map(({ activationId }) => activationId))
    const own = withoutSecondTokens(tokens, ({ tokenId }) => tokenId)
    await importBatch(parts, applications, { rows, tokens: own }, { chosen, several })
    const last = batch.at(-1)
    const owner = last === undefined ? '' : ownerOf(last)
    const id = chosen.get(owner)
    // The next batch may go on with the last user of this one, and with no other.
    chosen = new Map(id === undefined ? [] : [[owner, id]])
    done += batch.length
    tell(() => `${done} of ${total} activations`)
  }
}

/** Makes a filter that leaves out a row whose id an earlier row has. `repeated`: the ids that several rows have. */
function createFilter({ record }: Pick<ImportParts, 'record'>, kind: Kind, repeated: readonly string[]) {
  const candidates = new Set(repeated)
  const seen = new Set<string>()
  return <Row>(rows: readonly Row[], idOf: (row: Row) => string): readonly Row[] =>
    rows.filter((row) => {
      const id = idOf(row)
      if (seen.has(id)) {
        record.leaveOut(kind, id, SECOND_ROW)
        return false
      }
      if (candidates.has(id)) seen.add(id)
      return true
    })
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

/** An activation with its history and its tokens. */
interface Phone {
  readonly activation: ImportedActivation
  readonly history: readonly ImportedHistory[]
  readonly tokens: readonly ImportedToken[]
}

/**
 * Imports a batch. Of a user's live activations the preferred one comes first; the next one is tried when that one cannot be imported.
 * `chosen`: the live activation of each user and application, as far as one is stored; `several`: applications whose users may have several.
 */
async function importBatch(
  parts: ImportParts,
  applications: TakenApplications,
  { rows: batch, tokens }: { readonly rows: readonly SourceActivation[]; readonly tokens: readonly SourceToken[] },
  { chosen, several }: { readonly chosen: Map<string, string>; readonly several: ReadonlySet<string> },
): Promise<void> {
  const { db, record } = parts
  const takesPlace = (row: SourceActivation): boolean => isLive(row) && !several.has(row.applicationId ?? '')
  const ids = batch.map(({ activationId }) => activationId)
  const existing = await findExistingActivations(db, ids)
  record.alreadyThere('activation', existing.size)
  const users = batch.filter(({ activationId }) => !existing.has(activationId)).map(({ userId }) => userId)
  const live = new Set((await listLiveActivations(db, [...new Set(users)])).map(ownerOf))
  const tokensOf = Map.groupBy(tokens, ({ activationId }) => activationId)
  const taken = new Map<string, ImportedActivation>()
  const storedTokens = new Set<string>()
  for (let open = batch; open.length > 0; ) {
    const rows: ImportedActivation[] = []
    const waiting: SourceActivation[] = []
    const asked = new Set<string>()
    for (const row of open) {
      const { activationId } = row
      const owner = ownerOf(row)
      if (existing.has(activationId)) {
        if (isLive(row)) chosen.set(owner, activationId)
        continue
      }
      if (takesPlace(row) && asked.has(owner)) {
        waiting.push(row)
        continue
      }
      const other = takesPlace(row) ? chosen.get(owner) : undefined
      const refusal =
        findRefusal(parts, applications, row) ??
        (other === undefined ? undefined : SECOND_PHONE) ??
        (takesPlace(row) && live.has(owner) ? OTHER_PHONE : undefined)
      const converted = refusal ?? convert(parts, row)
      if (typeof converted === 'string') {
        const detail = { [BAD_TIME]: row.badTimes ?? undefined, [SECOND_PHONE]: other }[converted]
        record.leaveOut('activation', activationId, converted, detail)
        continue
      }
      rows.push(converted)
      if (isLive(row)) asked.add(owner)
    }
    const stored = await store(parts, await completePhones(parts, rows, tokensOf))
    for (const { activation, tokenIds } of stored) {
      taken.set(activation.activationId, activation)
      if (activation.state !== 'REMOVED') chosen.set(ownerOf(activation), activation.activationId)
      for (const tokenId of tokenIds) storedTokens.add(tokenId)
    }
    open = waiting
  }
  await countTokens(parts, tokens, { existing, taken, storedTokens })
}

/** Reads and converts the history and the tokens of the activations. */
async function completePhones(
  parts: ImportParts,
  activations: readonly ImportedActivation[],
  tokensOf: ReadonlyMap<string, readonly SourceToken[]>,
): Promise<readonly Phone[]> {
  if (activations.length === 0) return []
  const history = await parts.source.history(activations.map(({ activationId }) => activationId))
  const historyOf = Map.groupBy(history, ({ activationId }) => activationId)
  return activations.map((activation) => ({
    activation,
    history: convertHistory(parts, activation, historyOf.get(activation.activationId) ?? []),
    tokens: (tokensOf.get(activation.activationId) ?? []).flatMap((token) => {
      const converted = convertToken(parts, activation, token)
      return typeof converted === 'string' ? [] : [converted]
    }),
  }))
}

interface Stored {
  readonly activation: ImportedActivation
  readonly tokenIds: readonly string[]
}

/** Stores phones in one transaction. When the database refuses it, stores them in halves, down to the phone that it refuses. */
async function store(parts: ImportParts, phones: readonly Phone[]): Promise<readonly Stored[]> {
  const { record, isDryRun } = parts
  const [first] = phones
  if (first === undefined) return []
  try {
    const stored = isDryRun ? await foresee(parts, phones) : await storeAtOnce(parts, phones)
    const inserted = new Set(stored.map(({ activation }) => activation.activationId))
    record.imported('activation', stored.length)
    for (const { activation } of phones)
      if (!inserted.has(activation.activationId)) record.leaveOut('activation', activation.activationId, OTHER_PHONE)
    return stored
  } catch (error) {
    // Requests of servers may lock the same rows in another order. The one that the database ends has done nothing, and the others go on.
    if (isDeadlock(error)) return store(parts, phones)
    const said = explainRefusal(error)
    if (phones.length > 1) {
      const middle = Math.ceil(phones.length / 2)
      return [...(await store(parts, phones.slice(0, middle))), ...(await store(parts, phones.slice(middle)))]
    }
    record.leaveOut('activation', first.activation.activationId, 'the database refuses it', said)
    return []
  }
}

const storeAtOnce = ({ db, platform }: ImportParts, phones: readonly Phone[]): Promise<readonly Stored[]> =>
  inTransaction(db, async (tx) => {
    const rows = phones.map(({ activation }) => activation)
    const inserted = new Set(await insertImportedActivations(tx, rows))
    // The reference may have a code twice. Nobody uses it again, so the second activation gets a random hash.
    const rest = rows.filter(({ activationId }) => !inserted.has(activationId))
    const again = rest.map((row) => ({ ...row, activationCodeHash: platform.randomBytes(CODE_HASH_BYTES) }))
    if (again.length > 0) for (const id of await insertImportedActivations(tx, again)) inserted.add(id)
    const stored = phones.filter(({ activation }) => inserted.has(activation.activationId))
    await insertImportedHistory(
      tx,
      stored.flatMap(({ history }) => history),
    )
    const tokens = await insertImportedTokens(
      tx,
      stored.flatMap((phone) => phone.tokens),
    )
    return stored.map(({ activation, tokens: own }) => ({
      activation,
      tokenIds: own.map(({ tokenId }) => tokenId).filter((tokenId) => tokens.has(tokenId)),
    }))
  })

/** The activations and tokens that an import would store, for a dry run. */
async function foresee({ db }: ImportParts, phones: readonly Phone[]): Promise<readonly Stored[]> {
  const tokenIds = phones.flatMap(({ tokens }) => tokens.map(({ tokenId }) => tokenId))
  const there = await findExistingTokens(db, tokenIds)
  return phones.map(({ activation, tokens }) => ({
    activation,
    tokenIds: tokens.map(({ tokenId }) => tokenId).filter((tokenId) => !there.has(tokenId)),
  }))
}

/** The map key of one user in one application. */
const ownerOf = ({ applicationId, userId }: { readonly applicationId: string | null; readonly userId: string }): string =>
  JSON.stringify([applicationId, userId])

const isLive = ({ status }: SourceActivation): boolean => ['PENDING_COMMIT', 'ACTIVE', 'BLOCKED'].includes(STATES[status] ?? '')

/** The reason to leave an activation out, as far as its unencrypted columns show one. */
function findRefusal(
  { isLiveOnly, platform }: ImportParts,
  applications: TakenApplications,
  row: SourceActivation,
): string | undefined {
  const state = STATES[row.status]
  if (parseUuid(row.activationId) === undefined || /[A-F]/.test(row.activationId)) return 'its id is no UUID in lower case'
  if (row.applicationId === null) return 'its application is missing'
  if (applications.get(row.applicationId) !== row.applicationNumber) return 'its application is left out'
  if (row.protocol !== 'powerauth') return `its protocol is ${row.protocol}`
  if (state === undefined) return `its state ${row.status} is not known`
  if (state === 'CREATED') return 'no phone has used its code yet: the bank makes a new one'
  if (state === 'REMOVED' && isLiveOnly) return 'it is removed, and --live-only was given'
  if (row.devicePublicKey === null || row.ctrData === null) return 'it has never exchanged keys'
  if (row.version !== ACTIVATION_VERSION) return `it is of protocol ${row.version ?? 'unknown'}`
  if (!isSourceId(row.userId)) return 'its user id is blank, or has control characters'
  if (row.createdAt === null || row.expiresAt === null || row.lastUsedAt === null) return BAD_TIME
  if (state === 'PENDING_COMMIT' && row.hasOtp) return 'it waits for a commit with an OTP'
  if (state === 'PENDING_COMMIT' && row.expiresAt.getTime() <= platform.now()) return 'it waited for its commit too long'
  return undefined
}

/** Converts a row; returns a text with the reason when it is left out. */
function convert(parts: ImportParts, row: SourceActivation): ImportedActivation | string {
  const { recordKeys, installationKeys, platform } = parts
  const { activationId, applicationId, userId, createdAt, expiresAt, lastUsedAt } = row
  const state = STATES[row.status]
  const flags = parseTexts(row.flags)
  const pair = openServerKeyPair(parts, row)
  const devicePublicKey = readPoint(row.devicePublicKey ?? '')
  const ctrData = parseBase64(row.ctrData ?? '', CTR_DATA_BYTES)
  if (state === undefined || state === 'CREATED' || applicationId === null || createdAt === null || expiresAt === null)
    throw new TypeError(`activation ${activationId} was not left out`)
  if (pair === undefined) return 'its server key cannot be opened, or is not the private half of its public key'
  const masterSecret = devicePublicKey && agreeMasterSecret(pair.privateKey, devicePublicKey)
  if (devicePublicKey === undefined || masterSecret === undefined) return 'its device key is not a point of P-256'
  if (ctrData === undefined) return 'its counter data is not Base64 of 16 bytes'
  if (flags === undefined || flags.some((flag) => !isIdentifier(flag) || /[\s,]/.test(flag)))
    return 'its flags are not a list of names'
  if (row.maxFailedAttempts < 1 || row.counter < 0 || row.failedAttempts < 0) return 'one of its counts is out of range'
  // The counts must have room to grow.
  if (Math.max(row.maxFailedAttempts, row.counter, row.failedAttempts) > COUNT_MAX) return 'one of its counts is out of range'
  return {
    activationId,
    applicationId,
    userId,
    state,
    protocolVersion: ACTIVATION_VERSION,
    // Nobody uses the code again. A random hash replaces one that the reference has deleted: nobody can know a code for it.
    activationCodeHash:
      row.activationCode === null
        ? platform.randomBytes(CODE_HASH_BYTES)
        : hashActivationCode(installationKeys.codeLookup, row.activationCode),
    serverPublicKey: pair.publicKey,
    serverPrivateKey: recordKeys.seal(places.serverPrivateKey({ activationId, applicationId, userId }), pair.pkcs8),
    devicePublicKey,
    activationFingerprint: activationFingerprint(devicePublicKey, activationId, pair.publicKey),
    masterSecret: recordKeys.seal(places.masterSecret({ activationId, applicationId, userId }), masterSecret),
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
    createdAt,
    expiresAt,
    lastUsedAt,
    flags: flags.join(','),
    commitPhase: row.commitPhase === 1 ? 'ON_KEY_EXCHANGE' : 'ON_COMMIT',
    eventType: 'registration_imported',
    eventData: composeEventData({ state, from: 'PowerAuth server' }),
    at: new Date(platform.now()),
  }
}

/** Converts the history of the reference, and adds a last row that says that it was imported. */
function convertHistory(
  { record }: Pick<ImportParts, 'record'>,
  { activationId, state, at }: ImportedActivation,
  history: readonly SourceHistory[],
): readonly ImportedHistory[] {
  let fromState: string | null = null
  const rows = history.flatMap(({ status, reason, externalUserId, occurredAt }): readonly ImportedHistory[] => {
    const toState = status === null ? undefined : STATES[status]
    if (toState === undefined || occurredAt === null) return []
    const row = { activationId, fromState, toState, reason, externalUserId, occurredAt }
    fromState = toState
    return [row]
  })
  if (rows.length < history.length)
    record.mend(
      'activation',
      activationId,
      'taken without rows of its history that have no state or no time of the years 1971 to 4999',
    )
  return [...rows, { activationId, fromState: state, toState: state, reason: 'IMPORTED', externalUserId: null, occurredAt: at }]
}

const STATES: Readonly<Record<number, 'CREATED' | 'PENDING_COMMIT' | 'ACTIVE' | 'BLOCKED' | 'REMOVED'>> = {
  1: 'CREATED',
  2: 'PENDING_COMMIT',
  3: 'ACTIVE',
  4: 'BLOCKED',
  5: 'REMOVED',
}
const OTHER_PHONE = 'the user has a live registration in pawl already'
const SECOND_PHONE = 'the user has another live phone in this application'
/** The version that activations of 3.0 to 3.3 have. */
const ACTIVATION_VERSION = 3
const CTR_DATA_BYTES = 16
const CODE_HASH_BYTES = 32
const BATCH_ROWS = 500
const COUNT_MAX = 2_000_000_000
