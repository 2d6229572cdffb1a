// The core, for other frameworks than Fastify and Express.
export {
  type CodeOptions,
  codeOfRoute,
  createGuard,
  type EncryptionOptions,
  type Factors,
  type Guard,
  type GuardOptions,
  type Incoming,
  type OpenedRequest,
  type PathParameters,
  Refusal,
  requireResourceId,
  type RouteCodeOptions,
  type RouteEncryptionOptions,
  type TokenOptions,
  type Verified,
} from './guard.ts'
export { createOfflineCodes, type OfflineChallenge, type OfflineCodes, type OfflineQuestion } from './offline.ts'
export { type PawlOptions, PawlUnavailable } from './pawl.ts'
