// /admin/apps: create and show applications with the domains and certificates that the mobile utility publishes (utility §4).
import { type Static, Type } from '@sinclair/typebox'
import { createApplication } from '../../../domain/application/application.ts'
import { readPinnedApplication } from '../../../domain/pinning/pinning.ts'
import { daysBetween } from '../../../domain/pinning/watch.ts'
import { named } from '../../../http/types.ts'
import { toBase64 } from '../../../lib/base64.ts'
import { notFound } from '../../../lib/errors.ts'
import { type ApplicationRow, findApplication, listApplications } from '../../../storage/application/applications.ts'
import { listPinnedDomains, type PinnedCertificateRow, type PinnedDomainRow } from '../../../storage/pinning/pinning.ts'
import { auditedEndpoint } from '../audited-endpoint.ts'
import { adminRead } from '../endpoint.ts'
import { Identifier, NewIdentifier, OfName, Seconds, toSeconds } from '../fields.ts'
import { PinnedCertificate, toCertificate } from './certificates.ts'
import type { KeyParts } from '../../../domain/secrets/secrets.ts'

const App = named('App', Type.Object({ name: Type.String(), displayName: Type.String() }))

/** The result of the last daily check of a domain. */
const Live = Type.Object({
  checkedAt: Seconds,
  fingerprint: Type.Optional(Type.String({ description: 'absent when no certificate was seen: then there is a problem' })),
  expires: Type.Optional(Seconds),
  daysToExpiry: Type.Optional(Type.Integer({ description: 'negative when it is over' })),
  isChainTrusted: Type.Optional(Type.Boolean()),
  isPinned: Type.Boolean(),
  problem: Type.Optional(Type.String()),
})

const PinnedDomain = Type.Object({
  name: Type.String(),
  port: Type.Integer({ description: 'where its certificate is looked at' }),
  certificates: Type.Array(PinnedCertificate),
  live: Type.Optional(Live),
})
export type PinnedDomain = Static<typeof PinnedDomain>

const AppDetail = named(
  'AppDetail',
  Type.Composite([App, Type.Object({ publicKey: Type.String(), domains: Type.Array(PinnedDomain) })]),
)
export type AppDetail = Static<typeof AppDetail>

async function readAppDetail(parts: KeyParts, name: string) {
  const { db, platform } = parts
  const application = await findApplication(db, name)
  const pinned = await readPinnedApplication(parts, name)
  if (application === undefined || pinned === undefined) throw notFound('application', name)
  const { certificates } = pinned
  const domains = await listPinnedDomains(db, name)
  const now = platform.now()
  return {
    ...toApp(application),
    publicKey: toBase64(pinned.publicKey),
    domains: domains.map((row) => {
      const own = certificates.filter(({ domain }) => domain === row.domain)
      const { domain, port } = row
      return { name: domain, port, certificates: own.map((one) => toCertificate(one, now)), ...toLive(row, own, now) }
    }),
  }
}

const toApp = ({ applicationId, displayName }: ApplicationRow) => ({
  name: applicationId,
  displayName: displayName ?? applicationId,
})

/** Composes Live. A pin that was added since the check counts. */
function toLive(row: PinnedDomainRow, pins: readonly PinnedCertificateRow[], now: number) {
  const { checkedAt, liveFingerprint, liveExpiresAt, isChainTrusted, problem } = row
  if (checkedAt === null) return {}
  const isPinned = pins.some(({ fingerprint, expiresAt }) => liveFingerprint?.equals(fingerprint) && expiresAt.getTime() >= now)
  const live = {
    checkedAt: toSeconds(checkedAt),
    ...(liveFingerprint !== null && { fingerprint: toBase64(liveFingerprint) }),
    ...(liveExpiresAt !== null && { expires: toSeconds(liveExpiresAt), daysToExpiry: daysBetween(now, liveExpiresAt.getTime()) }),
    ...(isChainTrusted !== null && { isChainTrusted }),
    isPinned,
    ...(problem !== null && { problem }),
  }
  return { live }
}

const appCreate = auditedEndpoint({
  route: 'POST /admin/apps',
  operationId: 'createApp',
  summary: 'Creates an application and its pinning key',
  body: Type.Object({ name: NewIdentifier, displayName: Type.Optional(Identifier) }),
  response: AppDetail,
  async handle({ body: { name, displayName }, parts }) {
    await createApplication(parts, name, displayName)
    return readAppDetail(parts, name)
  },
  audited: {
    target: ({ body: { name } }) => `application ${name}`,
    view: async (_call, answer) => answer && { name: answer.name, displayName: answer.displayName },
  },
})

const appsList = adminRead({
  route: 'GET /admin/apps',
  operationId: 'listApps',
  summary: 'Lists applications with their names for people',
  response: Type.Object({ applications: Type.Array(App) }),
  handle: async ({ parts }) => ({ applications: (await listApplications(parts.db)).map(toApp) }),
})

const appDetail = adminRead({
  route: 'GET /admin/apps/:name',
  operationId: 'readApp',
  summary: 'Pinned domains and certificates of an application',
  errors: ['ADMINISTRATION_REFUSED'],
  params: OfName,
  response: AppDetail,
  handle: ({ params, parts }) => readAppDetail(parts, params.name),
})

export const appEndpoints = [appCreate, appsList, appDetail]
