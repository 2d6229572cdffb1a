// Measures the most expensive bodies of each content type, of senders who prove nothing. The unit is the cost of a wrong code of 4.0 over two
// bytes, in which docs/decisions/0001-work-for-strangers.md counts.
import { randomBytes } from 'node:crypto'
import { connect } from 'node:net'
import type { HttpRequest } from '../../phone/http.ts'
import { threadsCpuMicroseconds } from './cpu.ts'
import { print } from './terminal.ts'

export interface BodyKind {
  readonly type: string | undefined
  /** The text that is repeated until the body has its length. */
  readonly piece: string
}

export const BODY_KINDS: readonly BodyKind[] = [
  { type: 'application/json', piece: '[[],[{"a":1}]],' },
  { type: 'application/x-www-form-urlencoded', piece: 'a=b&' },
  { type: 'multipart/form-data; boundary=x', piece: '--x\r\nContent-Disposition: form-data; name="a"\r\n\r\nb\r\n' },
  { type: 'text/plain; charset=utf-8', piece: 'ř' },
  { type: 'application/octet-stream', piece: '\0\u0001' },
  { type: 'application/vnd.unknown+xml', piece: '<a>&b;</a>' },
  { type: 'no type', piece: '%00' },
  { type: undefined, piece: '[],' },
]

/** A body of `bytes` bytes, or a few less. */
export const fill = ({ piece, type }: BodyKind, bytes: number): Buffer => {
  const repeated = piece.repeat(Math.floor((bytes - 4) / Buffer.byteLength(piece)))
  return Buffer.from(type === 'application/json' || type === undefined ? `[${repeated}0]` : repeated)
}

/** The bytes of a request, with a random X-Forwarded-For. With `piece` the body comes in chunks of so many bytes, without a length. */
export function toBytes({ method, path, headers, body }: HttpRequest, piece?: number): Buffer {
  const framing = piece === undefined ? { 'Content-Length': String(body.length) } : { 'Transfer-Encoding': 'chunked' }
  const lines = Object.entries({ Host: 'a', 'X-Forwarded-For': anySource(), ...headers, ...framing }).map(
    ([name, value]) => `${name}: ${value}\r\n`,
  )
  const head = Buffer.from(`${method} ${path} HTTP/1.1\r\n${lines.join('')}\r\n`)
  if (piece === undefined) return Buffer.concat([head, body])
  const chunks: Uint8Array[] = []
  for (let at = 0; at < body.length; at += piece) {
    const chunk = body.subarray(at, at + piece)
    chunks.push(Buffer.from(`${chunk.length.toString(16)}\r\n`), chunk, Buffer.from('\r\n'))
  }
  return Buffer.concat([head, ...chunks, Buffer.from('0\r\n\r\n')])
}

const anySource = (): string => `2001:db8:${randomBytes(2).toString('hex')}:${randomBytes(2).toString('hex')}::1`

/** Sends bytes over a new connection and waits for the headers of the answer. Returns its status, or what happened in place of an answer. */
export const sendBytes = (port: number, bytes: string | Uint8Array, timeoutMs = 20_000): Promise<string> =>
  new Promise((resolve) => {
    const socket = connect(port, '127.0.0.1')
    const end = (what: string): void => {
      clearTimeout(timer)
      socket.destroy()
      resolve(what)
    }
    const timer = setTimeout(() => end('no answer'), timeoutMs)
    let text = ''
    socket.on('data', (chunk: Buffer) => {
      text += chunk.toString('latin1')
      const [, status] = /^HTTP\/1\.1 (\d{3}) [^]*?\r\n\r\n/.exec(text) ?? []
      if (status !== undefined) end(status)
    })
    socket.on('error', ({ message }) => end(message))
    socket.on('close', () => end('closed'))
    socket.write(bytes)
  })

/** Requests of one kind that are measured together. */
export interface Measured {
  readonly name: string
  readonly make: () => Promise<Uint8Array> | Uint8Array
}

export interface Meter {
  /** Measures the cost of a request in units, and lists its answers. The unit is measured before and after. */
  readonly measure: (measured: Measured, count: number) => Promise<{ readonly units: number; readonly answers: string }>
}

/** Makes a meter for the server with this process and port. `makeUnit` makes a wrong code of 4.0 over two bytes. */
export function openMeter({ pid, port }: { readonly pid: number; readonly port: number }, makeUnit: Measured['make']): Meter {
  const cost = async (make: Measured['make'], count: number) => {
    const requests: Uint8Array[] = []
    for (let i = 0; i < count; i += 1) requests.push(await make())
    const before = threadsCpuMicroseconds(pid)
    const answers = new Set<string>()
    for (const bytes of requests) answers.add(await sendBytes(port, bytes))
    return { each: (threadsCpuMicroseconds(pid) - before) / count, answers: [...answers].join(', ') }
  }
  return {
    measure: async ({ make }, count) => {
      const units = Math.max(UNITS, Math.ceil(count / 3))
      const before = await cost(makeUnit, units)
      const { each, answers } = await cost(make, count)
      const after = await cost(makeUnit, units)
      return { units: each / ((before.each + after.each) / 2), answers }
    },
  }
}

/** Prints the cost of each long body. */
export async function printLongBodies(meter: Meter, isWanted: (name: string) => boolean): Promise<void> {
  print('\nin units of a wrong code of 4.0 over 2 bytes, one at a time:')
  for (const measured of listLongBodies().filter(({ name }) => isWanted(name))) {
    await meter.measure(measured, UNITS)
    const { units, answers } = await meter.measure(measured, BENCH_COUNT)
    print(`${measured.name.padEnd(88)} ${units.toFixed(2).padStart(6)}  ${answers}`)
  }
}

/** Lists bodies of each kind, at paths that read a form, read JSON, need a password, or do not exist. */
export function listLongBodies(): readonly Measured[] {
  const places = ['/console/sign-in', '/console/registrations', '/pa/v3/activation/status', '/registration', '/nothing']
  const of = (path: string, kind: BodyKind, bytes: number, piece?: number): Measured => ({
    name: `${path}, ${Math.floor(bytes / KIB)} KiB of ${kind.type}${piece === undefined ? '' : ` in chunks of ${piece}`}`,
    make: () => {
      const headers = kind.type === undefined ? {} : { 'Content-Type': kind.type }
      return toBytes({ method: 'POST', path, headers, body: fill(kind, bytes) }, piece)
    },
  })
  return places.flatMap((path) => [
    ...BODY_KINDS.flatMap((kind) => [of(path, kind, LONG), of(path, kind, SHORT)]),
    of(path, path.startsWith('/console') ? FORM : JSON_KIND, SHORT, 1),
    of(path, path.startsWith('/console') ? FORM : JSON_KIND, LONG, 1),
    of(path, path.startsWith('/console') ? FORM : JSON_KIND, LONG, 4 * KIB),
  ])
}

const UNITS = 4
const BENCH_COUNT = 30
const KIB = 1024
const LONG = 248 * KIB
const SHORT = 16 * KIB
const [JSON_KIND, FORM] = BODY_KINDS as [BodyKind, BodyKind]
