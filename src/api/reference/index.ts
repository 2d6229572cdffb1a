// Serves the back-end API of the reference (cloud §15): the endpoints that its published clients call. They use pawl's rules and doors.
// A file is named after the first noun of its URLs: activation/flags/list is in activation-flags.ts. A file whose endpoints verify or open is named
// after that: signature/verify and token/validate are in verify.ts, signature/offline/verify in offline.ts, signature/ecdsa/verify in
// device-signature.ts, ecies/decryptor in decryptor.ts. Tests have the same names; activation.test.ts also tests every activation-*.ts and
// application.ts.
import type { FastifyInstance } from 'fastify'
import type { Operation } from '../../http/operation.ts'
import { type AnyCloudEndpoint, describeCloudEndpoints } from '../cloud/endpoint.ts'
import { apiOfCallers } from '../cloud/index.ts'
import type { CloudParts } from '../cloud/parts.ts'
import { activationHistory, activationStatus, listActivations, lookupActivations } from './activation.ts'
import {
  blockActivation,
  commitActivation,
  removeActivation,
  unblockActivation,
  updateName,
  updateOtp,
  updateStatuses,
} from './activation-changes.ts'
import { createFlags, listFlags, removeFlags, updateFlags } from './activation-flags.ts'
import { initActivation } from './activation-init.ts'
import { applicationDetail, applicationOfKey, status } from './application.ts'
import { eciesDecryptor } from './decryptor.ts'
import { verifyDsa, verifyEcdsa, verifyJwt } from './device-signature.ts'
import { type Dialect, V3, V4 } from './endpoint.ts'
import { errorsOfReference, renderReferenceError } from './error-renderer.ts'
import { generalText, personalizedText, verifyOffline } from './offline.ts'
import { operationCancel, operationCreate, operationDetail, operationList, operationListPending } from './operation.ts'
import { validateToken, verifyCode } from './verify.ts'

type Declared = (dialect: Dialect) => AnyCloudEndpoint

const BOTH: readonly Declared[] = [
  status,
  applicationDetail,
  applicationOfKey,
  verifyCode,
  validateToken,
  personalizedText,
  generalText,
  verifyOffline,
  activationStatus,
  listActivations,
  lookupActivations,
  initActivation,
  commitActivation,
  blockActivation,
  unblockActivation,
  removeActivation,
  activationHistory,
  updateOtp,
  updateName,
  listFlags,
  createFlags,
  updateFlags,
  removeFlags,
  updateStatuses,
  operationCreate,
  operationDetail,
  operationList,
  operationListPending,
  operationCancel,
]

const referenceEndpoints: readonly AnyCloudEndpoint[] = [
  ...[...BOTH, verifyEcdsa, eciesDecryptor].map((declared) => declared(V3)),
  ...[...BOTH, verifyDsa, verifyJwt].map((declared) => declared(V4)),
]

export const referenceApi = (parts: CloudParts): ((app: FastifyInstance) => Promise<void>) =>
  apiOfCallers(parts, referenceEndpoints, renderReferenceError)

export const describeReferenceApi = (): Operation[] =>
  describeCloudEndpoints(referenceEndpoints, errorsOfReference, () => REFERENCE_TAG)

export const REFERENCE_TAG = 'Back-end API of the reference'
