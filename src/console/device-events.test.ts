// Tests the reading of audit rows about doors (cloud §7, §12.5).
import { expect, test } from 'vitest'
import { readVerdict } from './device-events.ts'

test.each([
  ['signature_ok', 'POST\n/transfer\n12\nabc', { door: 'Code', resource: 'POST /transfer', tone: 'good', says: 'Right' }],
  ['signature_ok', 'POST\n/transfer\n12\nabc\nTransfer 4711', { resource: 'POST /transfer', text: 'Transfer 4711' }],
  ['signature_does_not_match', 'GET\n/list\n0\nabc', { resource: 'GET /list', tone: 'bad', says: 'Wrong code' }],
  ['activation_invalid_state', 'GET\n/list\n0\nabc', { tone: 'bad', says: 'Activation not active' }],
  [
    'offline_code_ok',
    'POST\n/cash\n17\nabc\ntill 4',
    { door: 'Offline code', resource: 'POST /cash', text: 'till 4', tone: 'good' },
  ],
  ['offline_code_invalid', 'POST\n/cash\n17\nabc', { door: 'Offline code', tone: 'bad', says: 'Wrong offline code' }],
  ['envelope_keys_derived', '/pa/generic/activation', { door: 'Envelope', resource: '/pa/generic/activation', tone: 'good' }],
  ['envelope_opened', '/statement\n17', { door: 'Envelope', resource: '/statement', tone: 'good', says: 'Opened' }],
  [
    'device_signature_ok',
    'JWS ES256 ML-DSA-65\n17\nabc',
    { door: 'Device signature', resource: 'ES256, ML-DSA-65', tone: 'good', says: 'Right' },
  ],
  [
    'device_signature_invalid',
    'RAW\n17\nabc\nSIGNATURE_WRONG',
    { door: 'Device signature', tone: 'bad', says: 'Wrong signature' },
  ],
  ['device_signature_ok', 'PKCS10 ES256\n17\nabc', { door: 'Certificate request', resource: 'ES256' }],
])('%s with %j', (eventType, eventData, read) => expect(readVerdict({ eventType, eventData })).toMatchObject(read))

test('a row that is cut short still has its verdict', () => {
  expect(readVerdict({ eventType: 'signature_ok', eventData: '' })).toMatchObject({ door: 'Code', says: 'Right' })
})
