// Formats values that people compare, read and type: coordinates of points in fingerprints, bytes as decimal digits (v3 §4.3, §10.3; v4 §7.3, §8.6).

/** Reduces bytes to decimal digits: last 4 bytes, AND 0x7FFFFFFF, mod 10^digits, padded with zeros. */
export function toDecimal(bytes: Uint8Array, digits: number): string {
  const tail = new DataView(bytes.buffer, bytes.byteOffset + bytes.byteLength - 4, 4)
  return String((tail.getUint32(0) & 0x7fffffff) % 10 ** digits).padStart(digits, '0')
}

/** The components of a code in groups of `digits` (4 to 8) digits joined by `-` (v3 §10.3, v4 §7.3). */
export const toDecimalCode = (components: readonly Uint8Array[], digits: number): string =>
  components.map((component) => toDecimal(component, digits)).join('-')

/**
 * The X coordinate of an encoded point, compressed or not, without leading zero bytes: one byte shorter in one of 256 cases. ECDH uses another form.
 * `length`: bytes of a coordinate.
 */
export function minimalX(point: Uint8Array, length: number): Uint8Array {
  const x = point.subarray(1, 1 + length)
  const start = x.findIndex((byte) => byte !== 0)
  return start === -1 ? x.subarray(x.length) : x.subarray(start)
}
