// PATCH /admin/applications/{id}: the settings of an application (cloud §10).
import { Type } from '@sinclair/typebox'
import { serializeCustomObject } from '../../../../domain/application/custom-object.ts'
import { V4_ALGORITHMS } from '../../../../domain/application/master-keys.ts'
import { named, ok } from '../../../../http/types.ts'
import { markDefaultApplication, setApplicationSettings } from '../../../../storage/applications.ts'
import { auditedEndpoint } from '../../audited-endpoint.ts'
import {
  ApplicationDetail,
  auditedApplication,
  CustomObject,
  OfApplication,
  PROTOCOL_VERSIONS,
  readApplicationDetail,
} from './application.ts'

const VAULT_FACTORS = ['POSSESSION', 'POSSESSION_KNOWLEDGE', 'POSSESSION_BIOMETRY']

const ApplicationRole = Type.String({
  pattern: '^[A-Za-z0-9_.-]{1,64}$',
  description: 'must be 1 to 64 letters, digits, `_`, `.` or `-`',
  examples: ['retail'],
})

export const applicationChange = auditedEndpoint({
  method: 'PATCH',
  path: '/admin/applications/:id',
  operationId: 'changeApplication',
  summary: 'Changes the settings of an application',
  errors: ['ADMINISTRATION_REFUSED'],
  roles: ['admin'],
  params: OfApplication,
  body: Type.Object({
    isDefault: Type.Optional(Type.Literal(true)),
    vaultFactors: Type.Optional(Type.Array(named('VaultFactors', Type.String({ enum: VAULT_FACTORS })), { uniqueItems: true })),
    /** Goes into the answers of activation/status, for anybody to read; null removes it. */
    customObject: Type.Optional(Type.Union([CustomObject, Type.Null()])),
    algorithms: Type.Optional(
      Type.Array(named('Algorithm', Type.String({ enum: [...V4_ALGORITHMS] })), {
        uniqueItems: true,
        description: 'none: all of protocol 4.0',
      }),
    ),
    /** False: no phone of protocol 3 is bound any more, and QR codes of registrations are signed for phones of 4.0. */
    isProtocol3Admitted: Type.Optional(Type.Boolean()),
    roles: Type.Optional(Type.Array(ApplicationRole, { uniqueItems: true, maxItems: 32 })),
    /** Null: any. With 4.0, phones of protocol 3 cannot start their upgrade any more: its start has a code of theirs. */
    minimumProtocolVersion: Type.Optional(Type.Union([Type.String({ enum: PROTOCOL_VERSIONS }), Type.Null()])),
  }),
  response: ApplicationDetail,
  async handle({ params: { id }, body, tx }) {
    const { isDefault, vaultFactors, customObject, algorithms, isProtocol3Admitted, roles, minimumProtocolVersion } = body
    const serialized = customObject && serializeCustomObject(customObject)
    await readApplicationDetail(tx, id)
    if (isDefault) await markDefaultApplication(tx, id)
    await setApplicationSettings(tx, id, {
      // Possession and knowledge always opens the vault.
      vaultFactors: vaultFactors && [...new Set(['POSSESSION_KNOWLEDGE', ...vaultFactors])],
      customObject: serialized,
      algorithms,
      isProtocol3Admitted,
      roles,
      minimumVersion: minimumProtocolVersion,
    })
    return ok(await readApplicationDetail(tx, id))
  },
  audited: auditedApplication,
})
