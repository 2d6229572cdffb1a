// Reads DER (ITU-T X.690), one value after the other. A length in a longer form than necessary is refused.

/** One value with its tag. */
export interface DerValue {
  /** The identifier byte: class, whether the value contains others, and a number up to 30. */
  readonly tag: number
  /** The bytes of the value without tag and length. */
  readonly content: Uint8Array
  /** The same with tag and length. */
  readonly whole: Uint8Array
}

/** Tags of the universal class; those of SEQUENCE and SET have the bit for values that contain others. */
export const DER = { integer: 0x02, bitString: 0x03, oid: 0x06, sequence: 0x30, set: 0x31 } as const

/** Splits `bytes` into values that follow each other; undefined when the bytes are not such values. */
export function readDerValues(bytes: Uint8Array): readonly DerValue[] | undefined {
  const values: DerValue[] = []
  for (let at = 0; at < bytes.length; ) {
    const value = readAt(bytes, at)
    if (value === undefined) return undefined
    values.push(value)
    at += value.whole.length
  }
  return values
}

/** The values inside of one value with this tag. Undefined when `bytes` are not exactly one such value. */
export function readDerInside(bytes: Uint8Array, tag: number): readonly DerValue[] | undefined {
  const [value, ...rest] = readDerValues(bytes) ?? []
  return value?.tag === tag && rest.length === 0 ? readDerValues(value.content) : undefined
}

/** The content of a BIT STRING; undefined for one with unused bits. */
export const readBitString = ({ tag, content }: DerValue): Uint8Array | undefined =>
  tag === DER.bitString && content[0] === 0 ? content.subarray(1) : undefined

function readAt(bytes: Uint8Array, start: number): DerValue | undefined {
  const tag = bytes[start]
  const first = bytes[start + 1]
  // Tags of several bytes and indefinite lengths are refused: nothing that is read here has them.
  if (tag === undefined || (tag & 0x1f) === 0x1f || first === undefined || first === 0x80) return undefined
  const size = first < 0x80 ? 0 : first & 0x7f
  const lengthBytes = bytes.subarray(start + 2, start + 2 + size)
  if (size > LENGTH_BYTES_MAX || lengthBytes.length < size) return undefined
  const length = size === 0 ? first : lengthBytes.reduce((sum, byte) => sum * 256 + byte, 0)
  // DER allows a length only in its shortest form.
  if (size > 0 && (length < 0x80 || lengthBytes[0] === 0)) return undefined
  const from = start + 2 + size
  if (from + length > bytes.length) return undefined
  return { tag, content: bytes.subarray(from, from + length), whole: bytes.subarray(start, from + length) }
}

const LENGTH_BYTES_MAX = 4
