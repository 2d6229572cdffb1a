// PATCH /admin/applications/{id}/versions/{name}: switches a version on or off (cloud §10).
import { Type } from '@sinclair/typebox'
import { ok } from '../../../../http/types.ts'
import { notFound } from '../../../../lib/errors.ts'
import { setVersionSupported } from '../../../../storage/applications.ts'
import { auditedEndpoint } from '../../audited-endpoint.ts'
import { Identifier } from '../../fields.ts'
import { ApplicationDetail, auditedApplication, readApplicationDetail } from '../applications/application.ts'

export const versionChange = auditedEndpoint({
  method: 'PATCH',
  path: '/admin/applications/:id/versions/:name',
  operationId: 'changeVersion',
  summary: 'Switches a version on or off',
  errors: ['ADMINISTRATION_REFUSED'],
  roles: ['admin'],
  params: Type.Object({ id: Identifier, name: Identifier }),
  body: Type.Object({ isSupported: Type.Boolean() }),
  response: ApplicationDetail,
  async handle({ params: { id, name }, body: { isSupported }, tx }) {
    if (!(await setVersionSupported(tx, id, name, isSupported))) throw notFound(`version ${name} of ${id}`)
    return ok(await readApplicationDetail(tx, id))
  },
  audited: auditedApplication,
})
