// CRC-16/ARC: reflected polynomial 0xA001, initial value 0, no final XOR. A checksum against typing errors, nothing more.

/** The checksum of `bytes`, 0 to 0xFFFF. */
export function crc16(bytes: Uint8Array): number {
  let crc = 0
  for (const byte of bytes) {
    crc ^= byte
    for (let bit = 0; bit < 8; bit += 1) crc = crc & 1 ? (crc >>> 1) ^ 0xa001 : crc >>> 1
  }
  return crc
}
