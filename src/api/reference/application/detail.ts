// application/detail: roles, versions and public keys of the application of the credential (cloud §15.2).
import { type TObject, Type } from '@sinclair/typebox'
import { findAllowedAlgorithms, readMasterPublicKeys } from '../../../domain/application/master-keys.ts'
import { toBase64 } from '../../../lib/base64.ts'
import { findApplication, listApplicationVersions } from '../../../storage/application/applications.ts'
import type { Dialect } from '../dialect.ts'
import { BANK_ROLES, foreignApplication, referenceEndpoint, requireOwn } from '../endpoint.ts'
import { Given, Names } from '../members.ts'

export const applicationDetail = (dialect: Dialect) =>
  referenceEndpoint(dialect, {
    path: 'application/detail',
    operationId: 'referenceApplication',
    summary: 'Roles and versions of the application of the credential',
    description: 'Without the secrets of versions: an administrator reads them below `/admin`.',
    errors: [],
    roles: BANK_ROLES,
    request: Type.Object({ applicationId: Given }),
    response: Type.Object({
      applicationId: Type.String(),
      ...(dialect.name === 'v3'
        ? { masterPublicKey: Type.String({ description: 'Base64 of a point of P-256' }) }
        : { supportedAlgorithms: Names }),
      applicationRoles: Names,
      versions: Type.Array(
        Type.Object({ applicationVersionId: Type.String(), applicationKey: Type.String(), supported: Type.Boolean() }),
      ),
    }) as TObject,
    async handle(call) {
      const { parts, applicationId, request } = call
      requireOwn(call, request.applicationId)
      const application = await findApplication(parts.db, applicationId)
      if (application === undefined) throw foreignApplication()
      const versions = await listApplicationVersions(parts.db, applicationId)
      const keys =
        dialect.name === 'v3'
          ? { masterPublicKey: toBase64((await readMasterPublicKeys(parts, applicationId)).EC_P256) }
          : { supportedAlgorithms: await findAllowedAlgorithms(parts.db, applicationId) }
      return {
        applicationId,
        ...keys,
        applicationRoles: [...application.roles],
        versions: versions.map(({ name, applicationKey, isSupported }) => ({
          applicationVersionId: name,
          applicationKey,
          supported: isSupported,
        })),
      }
    },
  })
