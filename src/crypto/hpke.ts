// Exports secrets with HPKE (RFC 9180): DHKEM(P-384, HKDF-SHA384), base mode, HKDF-SHA384, no AEAD.
import { concat, utf8 } from '../lib/bytes.ts'
import { ecdh, generateKeyPair, type KeyPair, type Point, readPoint } from './key.ts'
import { hkdfExpand, hkdfExtract } from './kdf.ts'

/**
 * Encap with a given ephemeral key, which must be used only once (RFC 9180 §4.1). `recipient` is a point on P-384. Returns the ephemeral public key,
 * 97 bytes, and the shared secret, 48 bytes.
 */
export function encapDhkem(recipient: Point, ephemeral: KeyPair) {
  const enc = ephemeral.publicKey
  const dh = ecdh(ephemeral.privateKey, recipient.key)
  return { enc, sharedSecret: extractAndExpand(dh, concat(enc, recipient.bytes)) }
}

/**
 * SendExportBase with an output of 48 bytes (RFC 9180 §6.2). `point` is the recipient's public key, 97 bytes, or 49 in compressed form.
 * `ephemeral` is a key pair that is used only once; it is made here if it is not given. Returns its public key, 97 bytes, and the output. Undefined
 * when the point is not on P-384. It takes two milliseconds, so requests call it in a thread (threads.ts).
 */
export function sendExport(point: Uint8Array, info: Uint8Array, exporterContext: Uint8Array, ephemeral?: KeyPair) {
  const recipient = readPoint('P-384', point)
  if (recipient === undefined) return undefined
  const { enc, sharedSecret } = encapDhkem(recipient, ephemeral ?? generateKeyPair('P-384'))
  return { enc, exported: exportSecret(sharedSecret, info, exporterContext) }
}

/** SetupBaseS or SetupBaseR and one Export of 48 bytes (RFC 9180 §5.1, §5.3). */
export function exportSecret(sharedSecret: Uint8Array, info: Uint8Array, exporterContext: Uint8Array): Uint8Array {
  const pskIdHash = labeledExtract(HPKE_SUITE, EMPTY, 'psk_id_hash', EMPTY)
  const infoHash = labeledExtract(HPKE_SUITE, EMPTY, 'info_hash', info)
  const secret = labeledExtract(HPKE_SUITE, sharedSecret, 'secret', EMPTY)
  const exporterSecret = labeledExpand(HPKE_SUITE, secret, 'exp', concat(MODE_BASE, pskIdHash, infoHash))
  return labeledExpand(HPKE_SUITE, exporterSecret, 'sec', exporterContext)
}

// RFC 9180 §4.1, ExtractAndExpand.
const extractAndExpand = (dh: Uint8Array, kemContext: Uint8Array): Uint8Array =>
  labeledExpand(KEM_SUITE, labeledExtract(KEM_SUITE, EMPTY, 'eae_prk', dh), 'shared_secret', kemContext)

// RFC 9180 §4, LabeledExtract and LabeledExpand. Every output of LabeledExpand here has 48 bytes.
const labeledExtract = (suite: Uint8Array, salt: Uint8Array, label: string, ikm: Uint8Array): Uint8Array =>
  hkdfExtract(salt, concat(VERSION_LABEL, suite, utf8(label), ikm))

const labeledExpand = (suite: Uint8Array, prk: Uint8Array, label: string, info: Uint8Array): Uint8Array =>
  hkdfExpand(prk, concat(LENGTH_48, VERSION_LABEL, suite, utf8(label), info), 48)

const EMPTY = new Uint8Array(0)
const MODE_BASE = Uint8Array.of(0)
const LENGTH_48 = Uint8Array.of(0, 48)
const VERSION_LABEL = utf8('HPKE-v1')
// KEM 0x0011, KDF 0x0002, AEAD 0xFFFF (RFC 9180 §7).
const KEM_SUITE = concat(utf8('KEM'), Uint8Array.of(0x00, 0x11))
const HPKE_SUITE = concat(utf8('HPKE'), Uint8Array.of(0x00, 0x11, 0x00, 0x02, 0xff, 0xff))
