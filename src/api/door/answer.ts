// What doors answer (cloud §12.2): a verdict, and what the bank may know of an activation of its own.
import { type Static, Type } from '@sinclair/typebox'
import { REFUSED_FLAGS_WITHOUT } from './members.ts'
import { Time } from '../cloud/fields.ts'
import type { ActivationRow } from '../../storage/activation/find.ts'
import { toList } from '../../storage/database/columns.ts'

const enumOf = <T extends string>(values: readonly T[], description?: string) =>
  Type.Unsafe<T>(Type.String({ enum: [...values], ...(description !== undefined && { description }) }))

/** Members that a door tells of an activation of the caller's application. */
export const OWN_MEMBERS = {
  activationId: Type.Optional(Type.String({ format: 'uuid' })),
  userId: Type.Optional(Type.String()),
  state: Type.Optional(enumOf(['CREATED', 'PENDING_COMMIT', 'ACTIVE', 'BLOCKED', 'REMOVED'])),
  blockReason: Type.Optional(Type.String({ description: 'of an activation that is BLOCKED' })),
  blockExpiresAt: Type.Optional(Time),
  remainingAttempts: Type.Optional(Type.Integer({ description: 'wrong codes until the activation is blocked, after this one' })),
  factors: Type.Optional(Type.String({ description: 'announced by the phone; proven only where `isValid` is true' })),
  protocolVersion: Type.Optional(Type.String({ description: 'of the header', examples: ['3.3'] })),
  flags: Type.Optional(Type.Array(Type.String())),
  applicationVersion: Type.Optional(Type.String({ description: 'name of the version that the header names' })),
  applicationRoles: Type.Optional(Type.Array(Type.String())),
}

/** `isValid`, and why not: for the log of the bank, never for the phone. */
export const verdictMembers = <Reason extends string>(reasons: readonly Reason[]) => ({
  isValid: Type.Boolean(),
  reason: Type.Optional(enumOf(reasons, 'why `isValid` is false: for the log of the bank, never for the phone')),
})

export type OwnAnswer = Static<ReturnType<typeof Type.Object<typeof OWN_MEMBERS>>>

/** What is told of an own activation: `activation` as it is now, `versionName` where a version was named, and the roles of the application. */
export const composeOwn = (
  activation: ActivationRow,
  { versionName, roles }: { readonly versionName?: string; readonly roles: readonly string[] },
): OwnAnswer => ({
  activationId: activation.activationId,
  userId: activation.userId,
  state: activation.state,
  ...(activation.state === 'BLOCKED' && { blockReason: activation.blockedReason ?? 'MAX_FAILED_ATTEMPTS' }),
  ...(activation.blockExpiresAt && { blockExpiresAt: activation.blockExpiresAt.getTime() }),
  remainingAttempts: Math.max(0, activation.maxFailedAttempts - activation.failedAttempts),
  flags: toList(activation.flags),
  ...(versionName !== undefined && { applicationVersion: versionName }),
  applicationRoles: [...roles],
})

/** Whether the flags of an activation are as the bank demands. */
export function areFlagsRight(
  { flags: text }: Pick<ActivationRow, 'flags'>,
  {
    refusedFlags = REFUSED_FLAGS_WITHOUT,
    requiredFlags = [],
  }: { readonly refusedFlags?: readonly string[] | undefined; readonly requiredFlags?: readonly string[] | undefined },
): boolean {
  const flags = toList(text)
  return !refusedFlags.some((flag) => flags.includes(flag)) && requiredFlags.every((flag) => flags.includes(flag))
}
