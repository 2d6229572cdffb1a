// operation/create: asks a user to approve something (cloud §15.2).
import { Type } from '@sinclair/typebox'
import { createOperation } from '../../../domain/operation/create.ts'
import { AnyMembers, OptionalOrNull } from '../../../http/types.ts'
import { Identifier, UserId } from '../../cloud/fields.ts'
import { refuse } from '../../door/members.ts'
import type { Dialect } from '../dialect.ts'
import { BANK_ROLES, foreignApplication, referenceEndpoint } from '../endpoint.ts'
import { NamesGiven, Optional, requireNoData, TimeGiven } from '../members.ts'
import { OperationView, viewOperation } from './view.ts'

export const operationCreate = (dialect: Dialect) =>
  referenceEndpoint(dialect, {
    path: 'operation/create',
    operationId: 'referenceCreateOperation',
    summary: 'Asks a user to approve something',
    description:
      'What the template decides in pawl (`activationFlag`, `timestampExpires`, `proximityCheckEnabled`) and `activationId` are refused here.',
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
      activationFlag: Optional,
      timestampExpires: TimeGiven,
      proximityCheckEnabled: OptionalOrNull(Type.Boolean()),
      activationId: Optional,
    }),
    response: OperationView(dialect),
    async handle(call) {
      const { request, parts, applicationId } = call
      const { userId, applications, templateName: template, externalId = null, parameters } = request
      if (applications.some((named) => named !== applicationId)) throw foreignApplication()
      for (const member of NOT_OFFERED) {
        const given = request[member]
        if (given !== null && given !== undefined) throw refuse(member, 'is not offered: the template decides it')
      }
      requireNoData(request.additionalData)
      const wanted = { template, language: 'en', externalId, parameters: parameters ?? {} }
      const operation = await createOperation(parts, { applicationId, userId }, wanted)
      if (operation === undefined) throw foreignApplication()
      return await viewOperation(dialect, call, operation)
    },
  })

const NOT_OFFERED = ['activationFlag', 'timestampExpires', 'proximityCheckEnabled', 'activationId'] as const
