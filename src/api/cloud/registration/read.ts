// GET /registration: state and device of a registration (cloud §3).
import { Type } from '@sinclair/typebox'
import { openQrText, readRegistration } from '../../../domain/activation/registration.ts'
import { ownerOf } from '../application-of.ts'
import { cloudEndpoint } from '../endpoint.ts'
import { OfUser, QR_TEXT } from './user.ts'

const PHONE = { name: 'Phone of Alice', platform: 'ios', deviceInfo: 'iPhone15,2' }

const Device = { name: Type.String(), platform: Type.String(), deviceInfo: Type.String() }

export const registrationRead = cloudEndpoint({
  method: 'GET',
  path: '/registration',
  operationId: 'readRegistration',
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
      // Everybody who has the code can bind a phone, so a caller who may only read does not get it.
      const mayBind = call.caller.role !== 'read-only'
      return { registration: row.state, ...(mayBind && { activationQrCodeData: openQrText(call.parts, owner, row) }) }
    }
    const device = { name: row.name ?? '', platform: row.platform ?? 'unknown', deviceInfo: row.deviceInfo ?? '' }
    const isPending = row.state === 'PENDING_COMMIT'
    return { registration: row.state, ...device, ...(isPending && { activationFingerprint: row.activationFingerprint ?? '' }) }
  },
})
