// Reads a body whole, within a bound.
import type { Readable } from 'node:stream'
import { Refusal } from './guard.ts'

/** The bytes of a stream. Throws Refusal when they are more than `bytesMax`. */
export async function readBody(stream: Readable, bytesMax: number): Promise<Buffer> {
  const parts: Buffer[] = []
  let length = 0
  // The stream stays as it is, or the connection would be closed before the refusal is sent.
  for await (const part of stream.iterator({ destroyOnReturn: false }) as AsyncIterable<Uint8Array | string>) {
    const bytes = typeof part === 'string' ? Buffer.from(part) : Buffer.from(part)
    length += bytes.length
    if (length > bytesMax) throw new Refusal(413, 'BODY_TOO_LARGE')
    parts.push(bytes)
  }
  return Buffer.concat(parts, length)
}

/** What stands behind the first `?` of a request's URL, as it came; empty without one. */
export function rawQuery(url: string): string {
  const at = url.indexOf('?')
  return at < 0 ? '' : url.slice(at + 1)
}
