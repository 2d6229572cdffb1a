// /registration: one device a user, bound through an activation code. Spec: cloud §3.
import { Type } from '@sinclair/typebox'
import { changeRegistration, createRegistration, openQrText, readRegistration } from '../../../domain/activation/registration.ts'
import { Ok } from '../../../http/types.ts'
import { cloudEndpoint, ownerOf } from '../endpoint.ts'
import { OptionalText, UserId } from '../fields.ts'

const QR_TEXT = 'VVVVV-VVVVV-VVVVV-VTFVA#MEUCIQDcPHNjYPjLQ7iYoQ=='
const PHONE = { name: 'Phone of Alice', platform: 'ios', deviceInfo: 'iPhone15,2' }

const roles = ['admin', 'integration'] as const
const OfUser = Type.Object({ userId: UserId })

export const registrationCreate = cloudEndpoint({
  method: 'POST',
  path: '/registration',
  summary: 'Creates a registration',
  description: 'The whole answer is the content of the QR code; its part before `#` is the activation code for typing.',
  errors: ['REGISTRATION_EXISTS', 'REGISTRATION_NOT_FOUND'],
  roles,
  body: OfUser,
  response: Type.Object({ activationQrCodeData: Type.String({ examples: [QR_TEXT] }) }),
  async handle(call) {
    const owner = await ownerOf(call, call.body.userId)
    const { activationQrCodeData } = await createRegistration(call.parts, owner)
    return { activationQrCodeData }
  },
})

const Device = { name: Type.String(), platform: Type.String(), deviceInfo: Type.String() }

export const registrationRead = cloudEndpoint({
  method: 'GET',
  path: '/registration',
  summary: 'State and device of a registration',
  errors: ['REGISTRATION_NOT_FOUND'],
  roles: ['admin', 'integration', 'read-only'],
  query: OfUser,
  // One of five shapes; members that a shape does not have are absent.
  response: Type.Object(
    {
      registration: Type.Union(['NONE', 'CREATED', 'PENDING_COMMIT', 'ACTIVE', 'BLOCKED'].map((state) => Type.Literal(state))),
      activationQrCodeData: Type.Optional(Type.String()),
      ...Type.Partial(Type.Object(Device)).properties,
      activationFingerprint: Type.Optional(Type.String()),
    },
    {
      examples: [
        { registration: 'NONE' },
        { registration: 'CREATED', activationQrCodeData: QR_TEXT },
        { registration: 'PENDING_COMMIT', ...PHONE, activationFingerprint: '74618273' },
        { registration: 'ACTIVE', ...PHONE },
        { registration: 'BLOCKED', ...PHONE },
      ],
    },
  ),
  async handle(call) {
    const row = await readRegistration(call.parts, await ownerOf(call, call.query.userId))
    if (row === undefined) return { registration: 'NONE' }
    if (row.state === 'CREATED') {
      // Whoever has the code can bind a phone: it is nothing for a caller who may only read.
      const mayBind = call.caller.role !== 'read-only'
      return { registration: row.state, ...(mayBind && { activationQrCodeData: openQrText(call.parts, row) }) }
    }
    const device = { name: row.name ?? '', platform: row.platform ?? 'unknown', deviceInfo: row.deviceInfo ?? '' }
    const isPending = row.state === 'PENDING_COMMIT'
    return { registration: row.state, ...device, ...(isPending && { activationFingerprint: row.activationFingerprint ?? '' }) }
  },
})

export const registrationChange = cloudEndpoint({
  method: 'PUT',
  path: '/registration',
  summary: 'Blocks, unblocks or removes a registration',
  description: '`BLOCK` is for ACTIVE ones; it also makes a temporary block, which is seen as BLOCKED, one that lasts.',
  errors: ['REGISTRATION_NOT_FOUND', 'REGISTRATION_CHANGE_REFUSED'],
  roles,
  body: Type.Object({
    userId: UserId,
    change: Type.Unsafe<'BLOCK' | 'UNBLOCK' | 'REMOVE'>(Type.String({ enum: ['BLOCK', 'UNBLOCK', 'REMOVE'] })),
    externalUserId: OptionalText,
    blockReason: OptionalText,
  }),
  response: Ok,
  async handle(call) {
    const { userId, change, blockReason, externalUserId } = call.body
    const owner = await ownerOf(call, userId)
    await changeRegistration(call.parts, owner, { change, reason: blockReason ?? null, externalUserId: externalUserId ?? null })
    return { status: 'OK' as const }
  },
})

export const registrationRemove = cloudEndpoint({
  method: 'DELETE',
  path: '/registration',
  summary: 'Removes a registration',
  errors: ['REGISTRATION_NOT_FOUND'],
  roles,
  query: OfUser,
  response: Ok,
  async handle(call) {
    const owner = await ownerOf(call, call.query.userId)
    await changeRegistration(call.parts, owner, { change: 'REMOVE', reason: null, externalUserId: null })
    return { status: 'OK' as const }
  },
})
