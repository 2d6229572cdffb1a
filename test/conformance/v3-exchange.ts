// Vectors of complete exchanges: activation and the signed and encrypted endpoints (v3 §8.3, §11 to §13).
import { expect } from 'vitest'
import { utf8 } from '../../src/lib/bytes.ts'
import type { AuthorizationHeader, EncryptionHeader } from '../../src/protocol/protocol.ts'
import { composeSignedData } from '../../src/protocol/wire/request-data.ts'
import { v3 } from '../../src/protocol/v3/index.ts'
import { readActivationKeys } from './v3-authentication.ts'
import {
  bytes,
  type Handler,
  has,
  integer,
  isMembers,
  type Members,
  members,
  optional,
  parseBody,
  text,
  toText,
} from './vector.ts'
import { privateKeyFromScalar } from '../helpers/crypto.ts'

const SCHEMES = ['Svc', 'PowerAuth']

const activationCreate: Handler = ({ input }) => {
  const header = v3.parseEncryptionHeader(text(input, 'encryptionHeader'), SCHEMES)
  if (!header) throw new Error('the encryption header does not parse')
  expect([header.version, header.applicationKey]).toEqual([text(input, 'protocolVersion'), text(input, 'applicationKey')])

  const layer1 = openLayer(input, header, '/pa/generic/application', parseBody(input, 'body'))
  const layer1Request: unknown = JSON.parse(toText(layer1.plaintext))
  if (!isMembers(layer1Request)) throw new Error('layer 1 is no object')
  const layer2 = openLayer(input, header, '/pa/activation', layer1Request['activationData'])
  const layer2Request: unknown = JSON.parse(toText(layer2.plaintext))
  if (!isMembers(layer2Request)) throw new Error('layer 2 is no object')

  const serverPrivateKey = privateKeyFromScalar('P-256', bytes(input, 'serverPrivateKey'))
  const devicePublicKey = bytes(layer2Request, 'devicePublicKey')
  const masterSecret = v3.agreeMasterSecret(serverPrivateKey, devicePublicKey)
  if (!masterSecret) throw new Error('devicePublicKey is not valid')
  return {
    layer1Request,
    layer2Request,
    layer2Response: layer2.seal(utf8(text(input, 'layer2ResponsePlaintext')), readAnswer(input, 'layer2Response')),
    response: layer1.seal(utf8(text(input, 'layer1ResponsePlaintext')), readAnswer(input, 'layer1Response')),
    masterSecret,
    transportKey: v3.deriveActivationKeys(masterSecret).keyTransport,
    activationFingerprint: v3.activationFingerprint(
      devicePublicKey,
      text(input, 'activationId'),
      bytes(input, 'serverPublicKey'),
    ),
  }
}

function openLayer(input: Members, { version, applicationKey }: EncryptionHeader, sharedInfo1: string, body: unknown) {
  const scope = 'APPLICATION_SCOPE'
  const envelope = v3.parseEnvelope({ version, scope, sharedInfo1, applicationKey, activationId: undefined }, body)
  expect(envelope?.temporaryKeyId).toBe(optional(text, input, 'temporaryKeyId'))
  const privateKey = bytes(input, has(input, 'temporaryPrivateKey') ? 'temporaryPrivateKey' : 'masterPrivateKey')
  const opened = envelope?.open({
    applicationSecret: text(input, 'applicationSecret'),
    envelopeKey: privateKeyFromScalar('P-256', privateKey),
    activationKeys: undefined,
  })
  if (!opened) throw new Error(`the layer of ${sharedInfo1} does not open`)
  return opened
}

// What a code covers, by endpoint (v3 §5.4, column "Order"); undefined where there is no code.
const SIGNED_BODY: Readonly<Record<string, 'ENVELOPE' | 'PLAINTEXT' | undefined>> = {
  'token-create': 'ENVELOPE',
  'vault-unlock': 'ENVELOPE',
  rename: 'PLAINTEXT',
  detail: undefined,
  'user-info': undefined,
}

const endpointExchange: Handler = ({ input, group = '' }) => {
  if (!(group in SIGNED_BODY)) throw new Error(`unknown group ${group}`)
  const { authorization, token, context } = readHeaders(input)
  expect([context.version, context.applicationKey, context.activationId]).toEqual([
    text(input, 'protocolVersion'),
    text(input, 'applicationKey'),
    text(input, 'activationId'),
  ])
  const keys = readActivationKeys(input)
  const scope = 'ACTIVATION_SCOPE'
  const envelope = v3.parseEnvelope({ ...context, scope, sharedInfo1: text(input, 'sharedInfo1Label') }, parseBody(input, 'body'))
  expect(envelope?.temporaryKeyId).toBe(optional(text, input, 'temporaryKeyId'))
  const privateKey = bytes(input, has(input, 'temporaryPrivateKey') ? 'temporaryPrivateKey' : 'serverPrivateKey')
  const opened = envelope?.open({
    applicationSecret: text(input, 'applicationSecret'),
    envelopeKey: privateKeyFromScalar('P-256', privateKey),
    activationKeys: keys,
  })
  if (!opened) throw new Error('the request does not open')

  const signed = SIGNED_BODY[group]
  const signedData =
    signed && authorization
      ? composeSignedData({
          method: text(input, 'method'),
          resourceId: text(input, 'path').replace('/pa/v3/', '/pa/'),
          nonce: authorization.nonce,
          body: signed === 'ENVELOPE' ? utf8(text(input, 'body')) : opened.plaintext,
          applicationSecret: text(input, 'applicationSecret'),
        })
      : undefined
  const ctrData = bytes(input, 'ctrData')
  const move = signedData && authorization && v3.verifyAuthenticationCode(keys, ctrData, signedData, authorization, 20).move
  return {
    requestPlaintext: toText(opened.plaintext),
    response: opened.seal(utf8(text(input, 'responsePlaintext')), readAnswer(input, 'response')),
    ...(signedData && {
      signedData: toText(signedData),
      signatureValid: move !== undefined,
      ctrDataAfter: move?.ctrData ?? ctrData,
    }),
    ...(token && {
      tokenValid: token.tokenId === text(input, 'tokenId') && v3.verifyTokenDigest(bytes(input, 'tokenSecret'), token),
    }),
  }
}

function readHeaders(input: Members) {
  const headers = members(input, 'headers')
  const find = (name: string): string | undefined =>
    optional(text, headers, `X-PowerAuth-${name}`) ?? optional(text, headers, `X-Svc-${name}`)
  const parse = <T>(parser: (value: string, schemes: readonly string[]) => T | undefined, name: string): T | undefined => {
    const value = find(name)
    const parsed = value === undefined ? undefined : parser(value, SCHEMES)
    if (value !== undefined && parsed === undefined) throw new Error(`the ${name} header does not parse`)
    return parsed
  }
  const authorization = parse(v3.parseAuthorizationHeader, 'Authorization')
  const context: AuthorizationHeader | EncryptionHeader | undefined =
    authorization ?? parse(v3.parseEncryptionHeader, 'Encryption')
  if (!context) throw new Error('there is no encryption context')
  return { authorization, token: parse(v3.parseTokenHeader, 'Token'), context }
}

// Versions without nonce and timestamp of the answer must not use these.
const readAnswer = (input: Members, prefix: string) => ({
  nonce: optional(bytes, input, `${prefix}Nonce`) ?? Buffer.alloc(16, 0xff),
  timestamp: optional(integer, input, `${prefix}Timestamp`) ?? 1,
})

export const exchangeFamilies: Readonly<Record<string, Handler>> = {
  'activation-create': activationCreate,
  'endpoint-exchange': endpointExchange,
}
