// Certificates as PEM text (RFC 7468 §5.1).

/** The PEM text of a DER certificate, with a line break at its end. */
export function toPem(der: Uint8Array): string {
  const lines = Buffer.from(der)
    .toString('base64')
    .replace(/.{64}(?=.)/g, '$&\n')
  return `-----BEGIN CERTIFICATE-----\n${lines}\n-----END CERTIFICATE-----\n`
}

/**
 * The bytes of the first certificate in a text, whatever else it holds; undefined when there is none. The bytes are not checked to be a
 * certificate.
 */
export function parsePem(text: string): Uint8Array | undefined {
  const [, body] = /-----BEGIN CERTIFICATE-----([A-Za-z0-9+/=\s]*)-----END CERTIFICATE-----/.exec(text) ?? []
  return body === undefined ? undefined : Buffer.from(body, 'base64')
}
