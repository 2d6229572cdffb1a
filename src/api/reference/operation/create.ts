// operation/create: asks a user to approve something (cloud §15.2).
import { Type } from '@sinclair/typebox'
import { createOperation } from '../../../domain/operation/create.ts'
import { AnyMembers, OptionalOrNull } from '../../../http/types.ts'
import { Flag, Identifier, UserId } from '../../cloud/fields.ts'
import { refuse } from '../../door/members.ts'
import type { Dialect } from '../dialect.ts'
import { BANK_ROLES, foreignApplication, referenceEndpoint } from '../endpoint.ts'
import { ActivationId, NamesGiven, Optional, requireNoData, TimeGiven, toTime } from '../members.ts'
import { OperationView, viewOperation } from './view.ts'

export const operationCreate = (dialect: Dialect) =>
  referenceEndpoint(dialect, {
    path: 'operation/create',
    operationId: 'referenceCreateOperation',
    summary: 'Asks a user to approve something',
    description:
      'With `activationId` no other phone is shown the operation or decides it. What the template decides in pawl (`proximityCheckEnabled`) is ' +
      'refused, and an `activationFlag` that is not that of a template which has one.',
    errors: ['REGISTRATION_NOT_FOUND'],
    roles: BANK_ROLES,
    request: Type.Object({
      userId: UserId,
      applications: Type.Array(NamesGiven.items, { minItems: 1, maxItems: 100 }),
      templateName: Identifier,
      externalId: Optional,
      parameters: OptionalOrNull(
        Type.Record(
          Type.String({ pattern: '^[^\\u0000-\\u001F\\u007F]{1,255}$' }),
          Type.String({ pattern: '^[^\\u0000]{0,4096}$', description: 'must be at most 4096 characters' }),
          { additionalProperties: false },
        ),
      ),
      additionalData: OptionalOrNull(AnyMembers),
      activationFlag: OptionalOrNull(Flag),
      timestampExpires: TimeGiven,
      proximityCheckEnabled: OptionalOrNull(Type.Boolean()),
      activationId: OptionalOrNull(ActivationId),
    }),
    response: OperationView(dialect),
    async handle(call) {
      const { request, parts, applicationId } = call
      const { userId, applications, templateName: template, externalId = null, parameters } = request
      if (applications.some((named) => named !== applicationId)) throw foreignApplication()
      if (typeof request.proximityCheckEnabled === 'boolean')
        throw refuse('proximityCheckEnabled', 'is not offered: the template decides it')
      requireNoData(request.additionalData)
      const expiresAt = toTime(request.timestampExpires)
      if (expiresAt !== null && expiresAt.getTime() <= parts.platform.now())
        throw refuse('timestampExpires', 'must be in the future')
      const limits = {
        activationId: request.activationId ?? undefined,
        activationFlag: request.activationFlag ?? undefined,
        expiresAt: expiresAt ?? undefined,
      }
      const wanted = { template, language: 'en', externalId, parameters: parameters ?? {}, ...limits }
      const operation = await createOperation(parts, { applicationId, userId }, wanted)
      if (operation === undefined) throw foreignApplication()
      return await viewOperation(dialect, call, operation)
    },
  })
