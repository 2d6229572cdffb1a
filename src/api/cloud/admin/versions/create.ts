// POST /admin/applications/{id}/versions: a version of its mobile app, with keys of its own (cloud §10).
import { Type } from '@sinclair/typebox'
import { addVersion } from '../../../../domain/application/application.ts'
import { ok } from '../../../../http/types.ts'
import { cloudEndpoint } from '../../endpoint.ts'
import { Identifier } from '../../fields.ts'
import { ApplicationDetail, auditedApplication, OfApplication, readApplicationDetail } from '../applications/application.ts'

export const versionCreate = cloudEndpoint({
  method: 'POST',
  path: '/admin/applications/:id/versions',
  summary: 'Adds a version',
  errors: ['ADMINISTRATION_REFUSED'],
  roles: ['admin'],
  params: OfApplication,
  body: Type.Object({ name: Identifier }),
  response: ApplicationDetail,
  invalidAs: 'ADMINISTRATION_REFUSED',
  async handle({ params: { id }, body: { name }, parts }) {
    await readApplicationDetail(parts.db, id)
    await addVersion(parts, id, name)
    return ok(await readApplicationDetail(parts.db, id))
  },
  audited: auditedApplication,
})
