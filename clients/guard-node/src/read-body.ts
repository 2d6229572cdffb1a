// Reads what a code may cover as it came: a body, whole and within a bound, and the query of a URL.
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

/**
 * What stands behind the first `?` of a request's URL, as it came; empty without one. Throws Refusal for a URL with a `#`, which no client sends:
 * frameworks begin or end the query there, and the handler would read another query than the code covers.
 */
export function rawQuery(url: string): string {
  if (url.includes('#')) throw new Refusal(401, 'TARGET')
  const at = url.indexOf('?')
  return at < 0 ? '' : url.slice(at + 1)
}
