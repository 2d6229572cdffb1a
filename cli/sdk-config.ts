// Shortens the configuration text of an SDK so that it fits into a QR code (v4 §3.3).

/** Ids of the master keys that an algorithm needs, with the id of P-256 for phones that are upgraded. */
export const KEYS_OF_ALGORITHM: ReadonlyMap<string, readonly number[]> = new Map([
  ['EC_P384', [1, 2]],
  ['EC_P384_ML_L3', [1, 2, 3]],
  ['EC_P384_ML_L5', [1, 2, 4]],
])

/** The configuration text with only the master keys whose ids are in `kept`. */
export function keepKeys(text: string, kept: readonly number[]): string {
  const bytes = Buffer.from(text, 'base64')
  let end = 1
  const takeData = (): void => {
    const first = bytes.readUInt8(end)
    // A length below 0x80 takes one byte, a longer one two: no value here has 16 KiB.
    end += first < 0x80 ? 1 + first : 2 + (bytes.readUInt16BE(end) & 0x3fff)
  }
  takeData()
  takeData()
  const head = bytes.subarray(0, end)
  const count = bytes.readUInt8(end)
  end += 1
  const keys = Array.from({ length: count }, () => {
    const start = end
    end += 1
    takeData()
    return bytes.subarray(start, end)
  }).filter(([id]) => id !== undefined && kept.includes(id))
  return Buffer.concat([head, Buffer.of(keys.length), ...keys]).toString('base64')
}
