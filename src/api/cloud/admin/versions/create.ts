// POST /admin/applications/{id}/versions: a version of its mobile app, with keys of its own (cloud §10).
import { Type } from '@sinclair/typebox'
import { addVersion } from '../../../../domain/application/application.ts'
import { ok } from '../../../../http/types.ts'
import { auditedEndpoint } from '../../audited-endpoint.ts'
import { Identifier } from '../../fields.ts'
import { ApplicationDetail, auditedApplication, OfApplication, readApplicationDetail } from '../applications/application.ts'

export const versionCreate = auditedEndpoint({
  method: 'POST',
  path: '/admin/applications/:id/versions',
  operationId: 'createVersion',
  summary: 'Adds a version',
  errors: ['ADMINISTRATION_REFUSED'],
  roles: ['admin'],
  params: OfApplication,
  body: Type.Object({ name: Identifier }),
  response: ApplicationDetail,
  invalidAs: 'ADMINISTRATION_REFUSED',
  async handle({ params: { id }, body: { name }, tx, parts }) {
    await readApplicationDetail(tx, id)
    await addVersion({ ...parts, db: tx }, id, name)
    return ok(await readApplicationDetail(tx, id))
  },
  audited: auditedApplication,
})
