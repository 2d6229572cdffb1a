// Coordinates of curve points in fingerprints (v3 §4.3, v4 §8.6).

/**
 * The X coordinate of an encoded point, compressed or not, without leading zero bytes: one byte shorter in one of 256 cases. Not
 * the form of ECDH. `length`: bytes of a coordinate.
 */
export function minimalX(point: Uint8Array, length: number): Uint8Array {
  const x = point.subarray(1, 1 + length)
  const start = x.findIndex((byte) => byte !== 0)
  return start === -1 ? x.subarray(x.length) : x.subarray(start)
}
