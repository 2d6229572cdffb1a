// The back-end API of the reference (cloud §15): what its published clients call, over the rules and the doors that pawl has.
import type { FastifyInstance } from 'fastify'
import { describeCloudEndpoints } from '../cloud/describe.ts'
import { apiOfCallers } from '../cloud/index.ts'
import type { Operation } from '../../http/operation.ts'
import { applicationDetail } from './application/detail.ts'
import { applicationOfKey } from './application/version.ts'
import { blockActivation } from './activation/block.ts'
import { commitActivation } from './activation/commit.ts'
import { createFlags, listFlags, removeFlags, updateFlags } from './activation/flags.ts'
import { activationHistory } from './activation/history.ts'
import { initActivation } from './activation/init.ts'
import { listActivations } from './activation/list.ts'
import { lookupActivations } from './activation/lookup.ts'
import { updateName } from './activation/name-update.ts'
import { updateOtp } from './activation/otp-update.ts'
import { removeActivation } from './activation/remove.ts'
import { activationStatus } from './activation/status.ts'
import { updateStatuses } from './activation/status-update.ts'
import { unblockActivation } from './activation/unblock.ts'
import { type Dialect, V3, V4 } from './dialect.ts'
import { eciesDecryptor } from './ecies/decryptor.ts'
import type { AnyCloudEndpoint } from '../cloud/endpoint.ts'
import { errorsOfReference, renderReferenceError } from './error-renderer.ts'
import { generalText } from './offline/non-personalized.ts'
import { personalizedText } from './offline/personalized.ts'
import { verifyOffline } from './offline/verify.ts'
import { operationCancel } from './operation/cancel.ts'
import { operationCreate } from './operation/create.ts'
import { operationDetail } from './operation/detail.ts'
import { operationList, operationListPending } from './operation/list.ts'
import { verifyDsa, verifyEcdsa, verifyJwt } from './signature/device.ts'
import { verifyCode } from './signature/verify.ts'
import type { CloudParts } from '../cloud/parts.ts'
import { status } from './status.ts'
import { validateToken } from './token/validate.ts'

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

/** Serves all of them. */
export const referenceApi = (parts: CloudParts): ((app: FastifyInstance) => Promise<void>) =>
  apiOfCallers(parts, referenceEndpoints, renderReferenceError)

export const describeReferenceApi = (): Operation[] =>
  describeCloudEndpoints(referenceEndpoints, errorsOfReference, () => REFERENCE_TAG)

export const REFERENCE_TAG = 'Back-end API of the reference'
