// Declares endpoints of the administration that change something. Both views, the change and its record are one transaction (cloud §7).
import type { Static, TSchema, TVoid } from '@sinclair/typebox'
import { type ErrorCode, PawlError } from '../../lib/errors.ts'
import { holdChanges } from '../../log/events.ts'
import { insertAdminEvent, lockAdministration } from '../../storage/credential/admin-events.ts'
import { inTransaction, type Pool, type Tx } from '../../storage/database/database.ts'
import { type AnyCloudEndpoint, type CloudCall, type CloudDeclaration, splitRoute } from './endpoint.ts'
import type { CloudParts } from './parts.ts'

/** A call within the transaction of its change. It has no other access to the database. */
export interface AuditedCall<B = unknown, Q = unknown, U = unknown, H = unknown> extends Omit<CloudCall<B, Q, U, H>, 'parts'> {
  readonly parts: Omit<CloudParts, 'db'> & { readonly db: Tx }
  /** Adds work that is done on the database after the commit, and only if the change is committed. The answer waits for it. */
  readonly afterCommit: (work: (db: Pool) => unknown) => void
}

/** The record of a change in the audit log of administrators. It must not contain secrets. */
export interface Audited<U = unknown, B = unknown, Q = unknown, R = unknown> {
  /** The changed thing, in words for people: `user alice`. `answer` is that of the handler, and may contain a password. */
  readonly target: (call: AuditedCall<B, Q, U>, answer: R) => string
  /** The thing in its current state, as JSON; undefined when there is none. Called before the change, without `answer`, and after it. */
  readonly view: (call: AuditedCall<B, Q, U>, answer: R | undefined) => Promise<unknown>
  /** The code of refusals that have counted an attempt. The count is committed, and nothing is recorded. */
  readonly committedRefusal?: ErrorCode
}

/** A change below /admin and its record. The types are those of body, query, path parameters, headers, answer and prepared work. */
interface Change<B, Q, U, H, R, P> {
  /** Does slow work before the transaction. The handler gets its result. */
  readonly prepare?: (call: CloudCall<B, Q, U, H>) => Promise<P>
  readonly handle: (call: AuditedCall<B, Q, U, H>, prepared: P) => Promise<R>
  readonly audited: Audited<U, B, Q, R>
}

/** Declares an endpoint whose change is recorded. Only administrators may call it. It refuses with ADMINISTRATION_REFUSED if `errors` are absent. */
export const auditedEndpoint = <
  B extends TSchema,
  Q extends TSchema,
  U extends TSchema,
  H extends TSchema,
  R extends TSchema = TVoid,
  P = undefined,
>(
  endpoint: Omit<CloudDeclaration<B, Q, U, R, H>, 'roles'> & Change<Static<B>, Static<Q>, Static<U>, Static<H>, Static<R>, P>,
): AnyCloudEndpoint => ({
  errors: ['ADMINISTRATION_REFUSED'],
  ...endpoint,
  ...splitRoute(endpoint.route),
  roles: ['admin'],
  isAudited: true,
  async serve(given) {
    const call = given as CloudCall<Static<B>, Static<Q>, Static<U>, Static<H>>
    const prepared = (await endpoint.prepare?.(call)) as P
    const { db, ...rest } = call.parts
    const { events, tell } = holdChanges(rest.events)
    const followUps: ((db: Pool) => unknown)[] = []
    const afterCommit = (work: (db: Pool) => unknown) => followUps.push(work)
    const outcome = await inTransaction(db, async (tx) =>
      changeAndRecord(endpoint, { ...call, parts: { ...rest, events, db: tx }, afterCommit }, prepared),
    )
    tell()
    if ('refusal' in outcome) throw outcome.refusal
    for (const followUp of followUps) await followUp(db)
    return outcome.answer
  },
})

/** Makes the change and records it. Returns a `refusal` whose count is to be committed; nothing is recorded then. */
async function changeAndRecord<B, Q, U, H, R, P>(
  { route, handle, audited }: Pick<AnyCloudEndpoint, 'route'> & Change<B, Q, U, H, R, P>,
  call: AuditedCall<B, Q, U, H>,
  prepared: P,
): Promise<{ readonly answer: R } | { readonly refusal: PawlError }> {
  await lockAdministration(call.parts.db)
  const before = await audited.view(call, undefined)
  try {
    const answer = await handle(call, prepared)
    const after = await audited.view(call, answer)
    await insertAdminEvent(call.parts.db, {
      username: call.caller.username,
      action: route.replaceAll(/:(\w+)/g, '{$1}'),
      target: audited.target(call, answer),
      before: JSON.stringify(before) ?? null,
      after: JSON.stringify(after) ?? null,
      occurredAt: new Date(call.parts.platform.now()),
    })
    return { answer }
  } catch (error) {
    if (error instanceof PawlError && error.code === audited.committedRefusal) return { refusal: error }
    throw error
  }
}
