// Bytes as decimal digits that a person reads and types (v3 §4.3, §10.3; v4 §7.3, §8.6).

/** Last 4 bytes, AND 0x7FFFFFFF, mod 10^digits, padded with zeros. */
export function toDecimal(bytes: Uint8Array, digits: number): string {
  const tail = new DataView(bytes.buffer, bytes.byteOffset + bytes.byteLength - 4, 4)
  return String((tail.getUint32(0) & 0x7fffffff) % 10 ** digits).padStart(digits, '0')
}

/** The components of a code in groups of `digits` (4 to 8) digits joined by `-` (v3 §10.3, v4 §7.3). */
export const toDecimalCode = (components: readonly Uint8Array[], digits: number): string =>
  components.map((component) => toDecimal(component, digits)).join('-')
