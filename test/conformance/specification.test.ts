// The worked examples of docs/spec: what they print is what the server derives and accepts.
import { readFileSync } from 'node:fs'
import { Type } from '@sinclair/typebox'
import { describe, expect, test } from 'vitest'
import { compileParser } from '../../src/http/validation.ts'
import { toBase64 } from '../../src/lib/base64.ts'
import { utf8 } from '../../src/lib/bytes.ts'
import * as codes3 from '../../src/protocol/v3/authentication-code.ts'
import * as keys3 from '../../src/protocol/v3/key-schedule.ts'
import * as blob3 from '../../src/protocol/v3/status-blob.ts'
import * as tokens3 from '../../src/protocol/v3/header.ts'
import * as codes4 from '../../src/protocol/v4/authentication-code.ts'
import * as keys4 from '../../src/protocol/v4/key-schedule.ts'
import * as blob4 from '../../src/protocol/v4/status-blob.ts'
import * as tokens4 from '../../src/protocol/v4/header.ts'
import { composeSignedData } from '../../src/protocol/wire/request-data.ts'

/** The last block of JSON in a document of docs/spec. */
function exampleOf(name: string): unknown {
  const text = readFileSync(new URL(`../../docs/spec/${name}.md`, import.meta.url), 'utf8')
  const [, example = ''] = /^## \d+\. Worked example\n.*^```json\n(.*?)^```/ms.exec(text) ?? []
  return JSON.parse(example)
}

const common = {
  possession: Type.String(),
  knowledge: Type.String(),
  ctrData: Type.String(),
  nextCtrData: Type.String(),
  ctrDataHash: Type.String(),
  method: Type.String(),
  uriId: Type.String(),
  nonce: Type.String(),
  body: Type.String(),
  applicationSecret: Type.String(),
  tokenSecret: Type.String(),
  timestamp: Type.Integer(),
}
const parseV3 = compileParser(
  Type.Object({
    ...common,
    keyMasterSecret: Type.String(),
    keyTransport: Type.String(),
    'code of 3.0': Type.String(),
    'code of 3.3': Type.String(),
    'tokenDigest of 3.3': Type.String(),
  }),
)
const parseV4 = compileParser(
  Type.Object({ ...common, keyActivationSecret: Type.String(), code: Type.String(), tokenDigest: Type.String() }),
)

const hex = (bytes: Uint8Array): string => Buffer.from(bytes).toString('hex')
const bytes = (text: string): Uint8Array => Buffer.from(text, 'hex')
const base64 = (text: string): Uint8Array => Buffer.from(text, 'base64')
const signedData = (example: {
  method: string
  uriId: string
  nonce: string
  body: string
  applicationSecret: string
}): Uint8Array =>
  composeSignedData({ ...example, resourceId: example.uriId, nonce: base64(example.nonce), body: utf8(example.body) })

const FACTORS = 'POSSESSION_KNOWLEDGE'
const LOOK_AHEAD = 20

describe('docs/spec/v3.md', () => {
  const example = parseV3(exampleOf('v3'))
  const keys = keys3.deriveActivationKeys(bytes(example.keyMasterSecret))

  test('keys', () => {
    expect(hex(keys3.kdf(bytes(example.keyMasterSecret), 1))).toBe(example.possession)
    expect(hex(keys3.kdf(bytes(example.keyMasterSecret), 2))).toBe(example.knowledge)
    expect(hex(keys.keyTransport)).toBe(example.keyTransport)
    expect(hex(blob3.deriveCtrDataHash(keys.keyTransportCtr, bytes(example.ctrData)))).toBe(example.ctrDataHash)
  })

  test.each(['3.0', '3.3'] as const)('the code of %s is accepted at the first counter value', (version) => {
    const given = { version, factors: FACTORS, code: example[`code of ${version}`] } as const
    const { move } = codes3.verifyAuthenticationCode(keys, bytes(example.ctrData), signedData(example), given, LOOK_AHEAD)
    expect(move && { ...move, ctrData: hex(move.ctrData) }).toEqual({ steps: 1, ctrData: example.nextCtrData })
  })

  test('digest of a token', () => {
    const header = { version: '3.3', nonce: base64(example.nonce), timestamp: example.timestamp }
    expect(toBase64(tokens3.computeTokenDigest(base64(example.tokenSecret), header))).toBe(example['tokenDigest of 3.3'])
  })
})

describe('docs/spec/v4.md', () => {
  const example = parseV4(exampleOf('v4'))
  const keys = keys4.deriveActivationKeys(keys4.createInitialActivationSecret(bytes(example.keyActivationSecret)))

  test('keys', () => {
    const kdk = keys4.deriveKdkAuthenticationCode(keys4.importKdfKey(bytes(example.keyActivationSecret)))
    expect(hex(keys4.derivePossessionKey(kdk))).toBe(example.possession)
    expect(hex(keys4.deriveKnowledgeKey(kdk))).toBe(example.knowledge)
    expect(hex(blob4.deriveCtrDataHash(keys, bytes(example.ctrData)))).toBe(example.ctrDataHash)
  })

  test('the code is accepted at the first counter value', () => {
    const given = { factors: FACTORS, code: example.code } as const
    const { move } = codes4.verifyAuthenticationCode(keys, bytes(example.ctrData), signedData(example), given, LOOK_AHEAD)
    expect(move && { ...move, ctrData: hex(move.ctrData) }).toEqual({ steps: 1, ctrData: example.nextCtrData })
  })

  test('digest of a token', () => {
    const header = { version: '4.0', nonce: base64(example.nonce), timestamp: example.timestamp }
    expect(toBase64(tokens4.computeTokenDigest(base64(example.tokenSecret), header))).toBe(example.tokenDigest)
  })
})
