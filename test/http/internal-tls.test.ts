// The end of a client certificate on a connection that is open already (cloud §2.3).
import { X509Certificate } from 'node:crypto'
import type { IncomingMessage } from 'node:http'
import { Socket } from 'node:net'
import { TLSSocket } from 'node:tls'
import { expect, test } from 'vitest'
import { fingerprintOf } from '../../src/http/internal-tls.ts'
import { createCertificate } from '../helpers/certificates.ts'

const made = createCertificate([], { days: 1 })
/** A request on a connection whose handshake showed this certificate. */
const requestBy = (certificate: X509Certificate): Pick<IncomingMessage, 'socket'> => ({
  socket: Object.assign(new TLSSocket(new Socket()), { authorized: true, getPeerX509Certificate: () => certificate }),
})

test('a certificate stands for somebody until its end', () => {
  const [request, end] = [requestBy(new X509Certificate(made.pem)), made.expires * 1000]
  expect(fingerprintOf(request, end)).toBe(Buffer.from(made.fingerprint, 'base64').toString('hex'))
  expect(fingerprintOf(request, end + 1)).toBeUndefined()
})

test('a certificate whose end is no time stands for nobody', () => {
  const der = Buffer.from(new X509Certificate(made.pem).raw)
  // The second UTCTime of a certificate is its end (RFC 5280 §4.1.2.5): tag, length, and twelve digits before a Z.
  const utcTime = Buffer.from('170d', 'hex')
  const end = der.indexOf(utcTime, der.indexOf(utcTime) + utcTime.length)
  der.write('endless----', end + 2, 'latin1')
  const certificate = new X509Certificate(der)
  expect(certificate.validTo).toBe('Bad time value')
  expect(fingerprintOf(requestBy(certificate), made.expires * 1000 - 1)).toBeUndefined()
})
