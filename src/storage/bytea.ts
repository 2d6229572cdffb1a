// Bytes of rows, in memory of their own: what is remembered of a row keeps nothing else.

/** A bytea as the database writes it: `\\x` and hex (`lib/bytes.ts`, ownBytes). */
export function parseBytea(text: string): Buffer {
  const bytes = Buffer.allocUnsafeSlow((text.length - PREFIX_LENGTH) / 2)
  bytes.write(text.slice(PREFIX_LENGTH), 'hex')
  return bytes
}

const PREFIX_LENGTH = 2
