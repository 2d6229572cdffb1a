// Vectors of ECIES envelopes with their intermediate values (v3 §6).
import { expect } from 'vitest'
import { ecdh, publicKeyFromPoint } from '../../src/crypto/key.ts'
import type { EnvelopeContext } from '../../src/protocol/protocol.ts'
import {
  deriveAssociatedData,
  deriveEnvelopeKey,
  deriveIv,
  deriveSharedInfo1,
  deriveSharedInfo2,
  deriveSharedInfo2Base,
  openEnvelope,
  parseEnvelope,
  parseMembers,
  type EnvelopeSecrets,
} from '../../src/protocol/v3/envelope.ts'
import { capabilitiesOf } from '../../src/protocol/v3/versions.ts'
import { bytes, type Handler, integer, type Members, members, optional, text, toText } from './vector.ts'
import { privateKeyFromScalar } from '../helpers/crypto.ts'

export const envelopeFamilies: Readonly<Record<string, Handler>> = {
  'ecies-v30': exchangeEnvelopes,
  'ecies-v31': exchangeEnvelopes,
  'ecies-v32': exchangeEnvelopes,
  'ecies-v33': exchangeEnvelopes,
  'ecies-negative': ({ input }) => {
    const envelope = parseRequest(input)
    const isForOurKey = envelope?.temporaryKeyId === optional(text, input, 'temporaryKeyId')
    const opened = isForOurKey ? openWith(input, envelope) : undefined
    return { valid: opened !== undefined, requestPlaintext: opened?.plaintext }
  },
  'public-ecies-application': openWithEnvelopeKey,
  'public-ecies-activation': openWithEnvelopeKey,
}

function exchangeEnvelopes({ input }: { input: Members }): Members {
  const context = readContext(input)
  const keys = readSecrets(input)
  const request = parseRequestMembers(input)
  const envelope = parseRequest(input)
  expect(envelope?.temporaryKeyId).toBe(optional(text, input, 'temporaryKeyId'))
  const opened = openWith(input, envelope)
  if (!opened) throw new Error('the request does not open')

  const ephemeralKey = publicKeyFromPoint('P-256', request.ephemeralPublicKey)
  const sharedInfo1 = deriveSharedInfo1(context)
  const envelopeKey = deriveEnvelopeKey(readPrivateKey(input), sharedInfo1, request.ephemeralPublicKey)
  if (!ephemeralKey || !envelopeKey) throw new Error('the ephemeral key is not valid')
  const sharedInfo2Base = deriveSharedInfo2Base(context, keys)
  const associatedData = deriveAssociatedData(context, request.temporaryKeyId)
  const answer = readAnswer(input)
  const requestParts = { nonce: request.nonce, timestamp: request.timestamp, ephemeralKey: request.ephemeralPublicKey }
  return {
    sharedInfo1,
    sharedInfo2Base,
    associatedData,
    sharedSecret: ecdh(readPrivateKey(input), ephemeralKey),
    envelopeKey,
    requestIv: deriveIv(envelopeKey, request.nonce),
    requestSharedInfo2: deriveSharedInfo2(sharedInfo2Base, associatedData, requestParts),
    requestPlaintext: opened.plaintext,
    responseIv: deriveIv(envelopeKey, associatedData ? answer.nonce : request.nonce),
    responseSharedInfo2: deriveSharedInfo2(sharedInfo2Base, associatedData, { ...answer, ephemeralKey: undefined }),
    response: opened.seal(bytes(input, 'responsePlaintext'), answer),
  }
}

function openWithEnvelopeKey({ input }: { input: Members }): Members {
  const context = readContext(input)
  const keys = readSecrets(input)
  const opened = openEnvelope(context, parseRequestMembers(input), keys, bytes(input, 'envelopeKey'))
  return {
    sharedInfo2Base: deriveSharedInfo2Base(context, keys),
    requestPlaintext: opened && toText(opened.plaintext),
    response: opened?.seal(Buffer.from(text(input, 'responsePlaintext')), readAnswer(input)),
  }
}

const parseRequest = (input: Members) => parseEnvelope(readContext(input), input['request'])

function parseRequestMembers(input: Members) {
  const capabilities = capabilitiesOf(text(input, 'protocolVersion'))
  const request = capabilities && parseMembers(capabilities, members(input, 'request'))
  if (!request) throw new Error('the request is not well-formed')
  return request
}

function readContext(input: Members): EnvelopeContext {
  const scope = text(input, 'scope')
  if (scope !== 'application' && scope !== 'activation') throw new Error(`unknown scope ${scope}`)
  return {
    version: text(input, 'protocolVersion'),
    scope: scope === 'application' ? 'APPLICATION_SCOPE' : 'ACTIVATION_SCOPE',
    sharedInfo1: optional(text, input, 'sharedInfo1Label') ?? '',
    applicationKey: text(input, 'applicationKey'),
    activationId: optional(text, input, 'activationId'),
  }
}

function openWith(input: Members, envelope: ReturnType<typeof parseRequest>) {
  const { applicationSecret, keyTransport } = readSecrets(input)
  const activationKeys = keyTransport && { keyTransport }
  return envelope?.open({ applicationSecret, envelopeKey: readPrivateKey(input), activationKeys })
}

const readPrivateKey = (input: Members) => privateKeyFromScalar('P-256', bytes(input, 'serverPrivateKey'))

const readSecrets = (input: Members): EnvelopeSecrets => ({
  applicationSecret: text(input, 'applicationSecret'),
  keyTransport: optional(bytes, input, 'transportKey'),
})

// Versions without nonce and timestamp of the answer must not use these.
const readAnswer = (input: Members) => ({
  nonce: optional(bytes, input, 'responseNonce') ?? Buffer.alloc(16, 0xff),
  timestamp: optional(integer, input, 'responseTimestamp') ?? 1,
})
