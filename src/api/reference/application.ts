// application/detail and application/detail/version: show the application of the credential. status: shows the server (cloud §15.2).
import { type TObject, Type } from '@sinclair/typebox'
import { listAllowedAlgorithms, readMasterPublicKeys } from '../../domain/application/master-keys.ts'
import { toBase64 } from '../../lib/base64.ts'
import { findApplication, findVersionOwners, listApplicationVersions } from '../../storage/application/applications.ts'
import { DOOR_ROLES } from '../door/members.ts'
import { type Dialect, foreignApplication, referenceEndpoint, requireOwn } from './endpoint.ts'
import { Given, Iso, Names } from './members.ts'

export const applicationDetail = (dialect: Dialect) =>
  referenceEndpoint(dialect, {
    path: 'application/detail',
    operationId: 'referenceApplication',
    summary: 'Roles and versions of the application of the credential',
    description: 'Without the secrets of versions: an administrator reads them below `/admin`.',
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
          : { supportedAlgorithms: [...listAllowedAlgorithms(application)] }
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

export const applicationOfKey = (dialect: Dialect) =>
  referenceEndpoint(dialect, {
    path: 'application/detail/version',
    operationId: 'referenceApplicationOfKey',
    summary: 'The application of an application key',
    request: Type.Object({ applicationKey: Given }),
    response: Type.Object({ applicationId: Type.String() }),
    async handle({ request: { applicationKey }, parts, applicationId }) {
      const owner = (await findVersionOwners(parts.db, [applicationKey])).get(applicationKey)
      if (owner !== applicationId) throw foreignApplication()
      return { applicationId }
    },
  })

export const status = (dialect: Dialect) =>
  referenceEndpoint(dialect, {
    path: 'status',
    operationId: 'referenceStatus',
    summary: 'That pawl serves, and which version',
    roles: DOOR_ROLES,
    request: Type.Object({}),
    response: Type.Object({
      status: Type.Literal('OK'),
      applicationName: Type.String(),
      applicationDisplayName: Type.String(),
      version: Type.String(),
      timestamp: Iso,
    }),
    async handle({ parts: { settings, platform } }) {
      const { statusName, statusVersion } = settings
      const timestamp = new Date(platform.now()).toISOString()
      return {
        status: 'OK' as const,
        applicationName: statusName,
        applicationDisplayName: statusName,
        version: statusVersion,
        timestamp,
      }
    },
  })
