// Exports and erases the data of one user of the bank. An export lists the rows of the user. An erasure (docs/decisions/0019-erasure.md) deletes
// them, and puts a pseudonym into the audit logs without breaking the chains of seals.
import { setTimeout as sleep } from 'node:timers/promises'
import { PawlError } from '../../lib/errors.ts'
import { ADMINISTRATION, AUDIT_LOGS, type AuditLogName, type ChainRow, findChains, lockLog } from '../../storage/audit/chain.ts'
import { deleteUserKey, findTold, type Person, replaceFields, replacePending, type ToldRow } from '../../storage/audit/erasure.ts'
import type { RowFields } from '../../storage/audit/rows.ts'
import { takeOverEvents } from '../../storage/audit/takeover.ts'
import { insertAdminEvent, lockAdministration } from '../../storage/credential/admin-events.ts'
import { inTransaction, isDeadlock, isLockTimeout, type Tx } from '../../storage/database/database.ts'
import { findAllUserClaims, readUserRows, type UserRow, type UserRows } from '../../storage/user/data.ts'
import {
  awaitCommits,
  closeName,
  type Closing,
  deleteUserRows,
  type ErasedRows,
  findActedFor,
  holdName,
  limitWaits,
  lockUser,
  openName,
} from '../../storage/user/erasure.ts'
import type { AuditParts } from '../audit/audit.ts'
import { certifyErasure, isChainAuthentic, isSealed, parseData, withData } from '../audit/mac.ts'
import type { KeyParts } from '../secrets/secrets.ts'
import { openClaims } from '../user-info/user-info.ts'

interface Erasure extends ErasedRows {
  /** `erased-` and a random text. It replaces the user in the audit logs, and nothing leads from it to the user. */
  readonly pseudonym: string
  readonly auditRows: number
}

/** The error when the audit log was altered. Nothing was erased. The verification of the log names the altered row. */
export class AlteredLogError extends Error {}

/**
 * Erases a user from every table, in one transaction. Live registrations are deleted too: pawl then refuses their phones, and sends no webhook
 * message. The log of administrators records the erasure under the pseudonym. Rows that others write about the user at the same time are erased, or
 * their transactions are refused. That also holds for a transaction that began before and commits later, and for one that begins within `closedMs`
 * afterwards. Throws AlteredLogError, and Error when others do not release a lock.
 */
export async function eraseUser(
  parts: Pick<AuditParts, 'db' | 'platform' | 'installationKeys'>,
  userId: string,
  closedMs = 0,
): Promise<Erasure> {
  const random = (bytes: number): Buffer => Buffer.from(parts.platform.randomBytes(bytes))
  const pseudonym = `erased-${random(PSEUDONYM_BYTES).toString('hex')}`
  const closing = { erasureId: random(PSEUDONYM_BYTES).toString('hex'), salt: random(SALT_BYTES) }
  // The table of the version before may still have rows of the user. No other statement looks for them there.
  while ((await takeOverEvents(parts.db, BATCH_ROWS)) === BATCH_ROWS);
  try {
    for (let tries = LOCK_TRIES; tries > 0; tries -= 1) {
      await closeName(parts.db, closing, userId)
      const erasure = await whileUnlocked(async () => {
        await inTransaction(parts.db, awaitCommits)
        return inTransaction(parts.db, (tx) => eraseWithin(tx, parts, closing, userId, pseudonym))
      })
      if (erasure) return erasure
      await sleep(LOCK_WAIT_MS)
    }
  } finally {
    await openName(parts.db, userId, closedMs)
  }
  throw notErased('others hold rows of the user, or seal the audit log, all the time')
}

const notErased = (why: string): PawlError => new PawlError('UNAVAILABLE', { detail: `${why}; nothing was erased, try again` })

/** Runs `work`. Undefined when it did not get a lock in time; it has then done nothing. */
const whileUnlocked = <T>(work: () => Promise<T>): Promise<T | undefined> =>
  work().catch((error: unknown) => {
    if (isLockTimeout(error) || isDeadlock(error)) return undefined
    throw error
  })

/**
 * Erases the user within a transaction. Undefined while another process seals, and when another erasure has opened the name; nothing was done then.
 */
async function eraseWithin(
  tx: Tx,
  parts: Pick<AuditParts, 'db' | 'platform' | 'installationKeys'>,
  closing: Closing,
  userId: string,
  pseudonym: string,
): Promise<Erasure | undefined> {
  await limitWaits(tx)
  for (const log of AUDIT_LOGS) if ((await lockLog(tx, log)) === undefined) return undefined
  if (!(await holdName(tx, closing))) return undefined
  await lockAdministration(tx)
  const person = { userId, phones: await lockUser(tx, userId), actedFor: await findActedFor(tx, userId) }
  const rows = await deleteUserRows(tx, userId, pseudonym)
  let auditRows = await replacePending(tx, person, pseudonym)
  for (const log of AUDIT_LOGS) auditRows += await eraseSealed(tx, parts, log, person, pseudonym)
  await deleteUserKey(tx, userId)
  if (!(await holdName(tx, closing))) throw notErased('the erasure took longer than its name is closed')
  const erasure = { pseudonym, ...rows, auditRows }
  await insertAdminEvent(tx, {
    username: 'command line',
    action: 'user erase',
    target: pseudonym,
    before: null,
    after: JSON.stringify(erasure),
    occurredAt: new Date(parts.platform.now()),
  })
  return erasure
}

async function eraseSealed(
  tx: Tx,
  { installationKeys: { auditSeal } }: Pick<AuditParts, 'installationKeys'>,
  log: AuditLogName,
  person: Person,
  pseudonym: string,
): Promise<number> {
  const chains = (await findChains(tx)).filter(({ name }) => (name === ADMINISTRATION) === (log === 'administrators'))
  for (const chain of chains) if (!isChainAuthentic(auditSeal, chain)) throw alteredAt(chain.name)
  let count = 0
  for (;;) {
    const told = await findTold(tx, log, person, BATCH_ROWS)
    const erased = told.map((row) => {
      const chain = log === 'devices' ? chains.find(({ chainId }) => chainId === row.chainId) : chains[0]
      const previous = chain && placeBefore(chain, row)
      // A certificate for an altered row would make the alteration authentic.
      if (!chain || !previous || !isSealed(auditSeal, chain.name, previous, row)) throw alteredAt(chain?.name, row.position)
      const fields = PSEUDONYMISED[log](row.fields, person, pseudonym)
      return {
        chainId: row.chainId,
        position: row.position,
        fields: certifyErasure(auditSeal, chain.name, previous, { ...row, fields }),
      }
    })
    if (erased.length > 0) await replaceFields(tx, log, erased)
    count += erased.length
    if (told.length < BATCH_ROWS) return count
  }
}

/** The place in the chain before a row; undefined if that row is missing. */
function placeBefore({ start }: ChainRow, { position, previousSeal }: ToldRow) {
  if (position - 1 === start.position) return start
  return previousSeal === null || position <= start.position ? undefined : { position: position - 1, seal: previousSeal }
}

const alteredAt = (chain = 'a chain that there is not', position?: number): AlteredLogError =>
  new AlteredLogError(
    `the audit log was altered: ${chain}${position === undefined ? '' : `, position ${position}`}; nothing was erased, and pawl audit verify says more`,
  )

type Pseudonymise = (fields: RowFields, person: Person, pseudonym: string) => RowFields

const PSEUDONYMISED: Record<AuditLogName, Pseudonymise> = {
  devices: (fields, { userId }, pseudonym) => {
    const [application, user, activation, type, data, time] = fields
    // The row belongs to another user, for whom the erased one acted.
    if (user !== userId) return withData(fields, JSON.stringify({ ...parseData(data ?? ''), externalUserId: pseudonym }))
    return [application, pseudonym, activation, type, '{}', time]
  },
  administrators: ([username, action, , , , time], _, pseudonym) => [username, action, pseudonym, null, '{}', time],
}

const PSEUDONYM_BYTES = 16
const SALT_BYTES = 32
const BATCH_ROWS = 500
const LOCK_TRIES = 100
const LOCK_WAIT_MS = 100

interface UserExport extends UserRows {
  readonly userId: string
  readonly exportedAt: Date
  /** The claims that phones can read about the user. */
  readonly claims: readonly UserRow[]
}

/** Reads the rows of a user in all applications, without secrets. A list is empty when there are no rows. */
export async function exportUser({ db, platform, recordKeys }: KeyParts, userId: string): Promise<UserExport> {
  const stored = await findAllUserClaims(db, userId)
  const claims = stored.map((row) => ({
    application_id: row.applicationId,
    updated_at: row.updatedAt,
    claims: openClaims({ recordKeys }, row.applicationId, userId, row.claims),
  }))
  return { userId, exportedAt: new Date(platform.now()), ...(await readUserRows(db, userId)), claims }
}
