// /registration: binds one device to a user through an activation code (cloud §3, v3 §8.5).
import { Type } from '@sinclair/typebox'
import {
  changeRegistration,
  commitRegistration,
  createRegistration,
  openQrText,
  readRegistration,
} from '../../domain/activation/registration.ts'
import { namedOwnerOf, ownerOf, refuseWithoutApplication } from './application-of.ts'
import { cloudEndpoint } from './endpoint.ts'
import { OptionalText, UserId } from './fields.ts'
import { CHANGE, QR_TEXT } from './registration-members.ts'

const OfUser = Type.Object({ userId: UserId })

const registrationCreate = cloudEndpoint({
  route: 'POST /registration',
  operationId: 'createRegistration',
  summary: 'Creates a registration',
  description: 'The whole answer is the content of the QR code; its part before `#` is the activation code for typing.',
  errors: ['REGISTRATION_EXISTS', 'REGISTRATION_NOT_FOUND', 'REGISTRATION_CHANGE_REFUSED'],
  roles: ['admin', 'integration'],
  body: OfUser,
  response: Type.Object({ activationQrCodeData: Type.String({ examples: [QR_TEXT] }) }),
  async handle(call) {
    const owner = await namedOwnerOf(call, call.body.userId)
    const created = await createRegistration(call.parts, owner, { verifiedBy: call.caller.username })
    if (created === undefined) throw await refuseWithoutApplication(call)
    return { activationQrCodeData: created.activationQrCodeData }
  },
})

const PHONE = { name: 'Phone of Alice', platform: 'ios', deviceInfo: 'iPhone15,2' }

const Device = { name: Type.String(), platform: Type.String(), deviceInfo: Type.String() }

const registrationRead = cloudEndpoint({
  route: 'GET /registration',
  operationId: 'readRegistration',
  summary: 'State and device of a registration',
  errors: ['REGISTRATION_NOT_FOUND', 'REGISTRATION_CHANGE_REFUSED'],
  roles: ['admin', 'integration', 'read-only'],
  query: OfUser,
  // One of five shapes. Members of the other shapes are absent.
  response: Type.Object(
    {
      registration: Type.String({ enum: ['NONE', 'CREATED', 'PENDING_COMMIT', 'ACTIVE', 'BLOCKED'] }),
      activationQrCodeData: Type.Optional(Type.String()),
      ...Type.Partial(Type.Object(Device)).properties,
      activationFingerprint: Type.Optional(Type.String()),
    },
    {
      title: 'Registration',
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
    const owner = await ownerOf(call, call.query.userId)
    const row = await readRegistration(call.parts, owner)
    if (row === undefined) return { registration: 'NONE' }
    if (row.state === 'CREATED') {
      // Whoever has the code can bind a phone, so a caller of the role read-only does not get it.
      const mayBind = call.caller.role !== 'read-only'
      return { registration: row.state, ...(mayBind && { activationQrCodeData: openQrText(call.parts, owner, row) }) }
    }
    const device = { name: row.name ?? '', platform: row.platform ?? 'unknown', deviceInfo: row.deviceInfo ?? '' }
    const isPending = row.state === 'PENDING_COMMIT'
    return { registration: row.state, ...device, ...(isPending && { activationFingerprint: row.activationFingerprint ?? '' }) }
  },
})

const registrationChange = cloudEndpoint({
  route: 'PUT /registration',
  operationId: 'changeRegistration',
  summary: 'Blocks, unblocks or removes a registration',
  description: '`BLOCK` is for ACTIVE ones; it also makes a temporary block, which is seen as BLOCKED, one that lasts.',
  errors: ['REGISTRATION_NOT_FOUND', 'REGISTRATION_CHANGE_REFUSED'],
  roles: ['admin', 'integration'],
  body: Type.Object({ userId: UserId, ...CHANGE }),
  async handle(call) {
    const { userId, change, blockReason, externalUserId } = call.body
    const owner = await ownerOf(call, userId)
    const by = { externalUserId: externalUserId ?? null, verifiedBy: call.caller.username }
    await changeRegistration(call.parts, owner, { change, reason: blockReason ?? null, ...by })
  },
})

const registrationRemove = cloudEndpoint({
  route: 'DELETE /registration',
  operationId: 'removeRegistration',
  summary: 'Removes a registration',
  errors: ['REGISTRATION_NOT_FOUND', 'REGISTRATION_CHANGE_REFUSED'],
  roles: ['admin', 'integration'],
  query: OfUser,
  async handle(call) {
    const owner = await ownerOf(call, call.query.userId)
    const by = { externalUserId: null, verifiedBy: call.caller.username }
    await changeRegistration(call.parts, owner, { change: 'REMOVE', reason: null, ...by })
  },
})

const registrationCommit = cloudEndpoint({
  route: 'POST /registration/commit',
  operationId: 'commitRegistration',
  summary: 'Confirms the device of a registration',
  errors: ['REGISTRATION_NOT_FOUND', 'REGISTRATION_CHANGE_REFUSED', 'OTP_INVALID'],
  roles: ['admin', 'integration'],
  body: Type.Object({
    userId: UserId,
    externalUserId: OptionalText,
    /** Needed for a registration whose commit demands an OTP. The contract does not have this member. */
    otp: OptionalText,
  }),
  async handle(call) {
    const { userId, externalUserId, otp } = call.body
    const named = await namedOwnerOf(call, userId)
    const by = { externalUserId: externalUserId ?? null, verifiedBy: call.caller.username }
    const outcome = await commitRegistration(call.parts, named, { otp: otp ?? null, ...by })
    if (outcome === 'NO_APPLICATION') throw await refuseWithoutApplication(call)
  },
})

export const registrationEndpoints = [
  registrationCreate,
  registrationRead,
  registrationChange,
  registrationRemove,
  registrationCommit,
]
