// What doors answer (cloud §12.2): a verdict, and what the bank may know of an activation of its own.
import { type Static, Type } from '@sinclair/typebox'
import { REFUSED_FLAGS_WITHOUT } from './members.ts'
import { Time } from '../cloud/fields.ts'
import type { ActivationRow } from '../../storage/activation/find.ts'
import type { DoorParties } from '../../storage/request/door-parties.ts'

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

/** What is told of an own activation: `activation` as it is now. */
export const composeOwn = (
  activation: ActivationRow,
  { flags, blockedReason, versionName, roles }: Pick<DoorParties, 'flags' | 'blockedReason' | 'versionName' | 'roles'>,
): OwnAnswer => ({
  activationId: activation.activationId,
  userId: activation.userId,
  state: activation.state,
  // One that is blocked now and was not when it was read was blocked by this code.
  ...(activation.state === 'BLOCKED' && { blockReason: blockedReason ?? 'MAX_FAILED_ATTEMPTS' }),
  ...(activation.blockExpiresAt && { blockExpiresAt: activation.blockExpiresAt.getTime() }),
  remainingAttempts: Math.max(0, activation.maxFailedAttempts - activation.failedAttempts),
  flags: [...flags],
  ...(versionName !== null && { applicationVersion: versionName }),
  applicationRoles: [...roles],
})

/** Whether the flags of an activation are as the bank demands. */
export const areFlagsRight = (
  flags: readonly string[],
  {
    refusedFlags = REFUSED_FLAGS_WITHOUT,
    requiredFlags = [],
  }: { readonly refusedFlags?: readonly string[] | undefined; readonly requiredFlags?: readonly string[] | undefined },
): boolean => !refusedFlags.some((flag) => flags.includes(flag)) && requiredFlags.every((flag) => flags.includes(flag))
