// Parts with their lengths in front, so that no two lists of parts are the same bytes (v3 §2.2, v4 §1.6).

/** SIZED: every part with its length as u32 in front; an absent part is encoded like an empty one. */
export function concatWithSizes(...parts: readonly (Uint8Array | undefined)[]): Uint8Array {
  const out = Buffer.allocUnsafe(parts.reduce((sum, part) => sum + SIZE_LENGTH + (part?.length ?? 0), 0))
  let at = 0
  for (const part of parts) {
    at = out.writeUInt32BE(part?.length ?? 0, at)
    if (part === undefined) continue
    out.set(part, at)
    at += part.length
  }
  return out
}

/** The parts of what concatWithSizes made, which share memory with it; an absent one is empty. Throws a RangeError for bytes that end early. */
export function splitBySizes(bytes: Buffer): Buffer[] {
  const parts: Buffer[] = []
  for (let at = 0; at < bytes.length; ) {
    const start = at + SIZE_LENGTH
    at = start + bytes.readUInt32BE(at)
    if (at > bytes.length) throw new RangeError('a part ends behind the last byte')
    parts.push(bytes.subarray(start, at))
  }
  return parts
}

const SIZE_LENGTH = 4
