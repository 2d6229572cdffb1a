// /admin/applications/{id}/versions: manages versions of the mobile app of an application, each with keys of its own (cloud §10).
import { Type } from '@sinclair/typebox'
import { addVersion } from '../../../domain/application/application.ts'
import { ok } from '../../../http/types.ts'
import { notFound } from '../../../lib/errors.ts'
import { setVersionSupported } from '../../../storage/application/applications.ts'
import { auditedEndpoint } from '../audited-endpoint.ts'
import { Identifier, NewIdentifier, OfId } from '../fields.ts'
import { ApplicationDetail, auditedApplication, readApplicationDetail } from './applications.ts'

const versionCreate = auditedEndpoint({
  route: 'POST /admin/applications/:id/versions',
  operationId: 'createVersion',
  summary: 'Adds a version',
  params: OfId,
  body: Type.Object({ name: NewIdentifier }),
  response: ApplicationDetail,
  invalidAs: 'ADMINISTRATION_REFUSED',
  async handle({ params: { id }, body: { name }, parts }) {
    await readApplicationDetail(parts.db, id)
    await addVersion(parts, id, name)
    return ok(await readApplicationDetail(parts.db, id))
  },
  audited: auditedApplication,
})

const versionChange = auditedEndpoint({
  route: 'PATCH /admin/applications/:id/versions/:name',
  operationId: 'changeVersion',
  summary: 'Switches a version on or off',
  params: Type.Object({ id: Identifier, name: Identifier }),
  body: Type.Object({ isSupported: Type.Boolean() }),
  response: ApplicationDetail,
  async handle({ params: { id, name }, body: { isSupported }, parts }) {
    if (!(await setVersionSupported(parts.db, id, name, isSupported))) throw notFound('version', `${name} of ${id}`)
    return ok(await readApplicationDetail(parts.db, id))
  },
  audited: auditedApplication,
})

export const versionEndpoints = [versionCreate, versionChange]
