// Holds sockets of one address open without use. They are in a process of their own, so that a measurement beside them does not count their
// sender.
import { fork } from 'node:child_process'
import { connect, type Socket } from 'node:net'
import { fileURLToPath } from 'node:url'
import { beginningOf, requestOf } from '../../test/helpers/sockets.ts'

interface Kind {
  readonly name: string
  /** The bytes that a socket sends at once. */
  readonly bytes: string
  /** The bytes that a socket sends each second. */
  readonly drip: string
}

export const CROWDS: readonly Kind[] = [
  { name: 'bodies of 15,000 bytes, a byte a second', bytes: beginningOf('/pa/v3/activation/status'), drip: ' ' },
  {
    name: 'bodies of 100,000 bytes, 20,000 at once, then a byte a second',
    bytes: beginningOf('/pa/v3/signature/validate', 100_000) + ' '.repeat(20_000),
    drip: ' ',
  },
  { name: 'idle after GET /health/live', bytes: requestOf('GET', '/health/live'), drip: '' },
  { name: 'headers, a byte a second', bytes: 'POST /pa/v3/status HTTP/1.1\r\nHost: a\r\n', drip: 'X' },
  { name: 'nothing sent', bytes: '', drip: '' },
]

export interface Crowd {
  /** Ends the crowd. Returns a text: how many sockets of all were open at the end. */
  readonly stop: () => Promise<string>
}

/** Opens `count` sockets to a port of 127.0.0.1 from 127.0.0.2, and opens all of them anew every 30 s. */
export function gatherCrowd(url: string, kind: Kind, count: number): Crowd {
  const port = new URL(url).port
  const child = fork(fileURLToPath(import.meta.url), [port, String(CROWDS.indexOf(kind)), String(count)])
  const ended = new Promise<string>((resolve) => child.once('message', (text) => resolve(String(text))))
  return {
    stop: async () => {
      child.send('stop')
      const text = await ended
      child.kill('SIGKILL')
      return text
    },
  }
}

function stand(port: number, { bytes, drip }: Kind, count: number): void {
  let sockets: Socket[] = []
  const isOpen = (socket: Socket): boolean => !socket.destroyed && !socket.readableEnded
  const openAll = (): void => {
    for (const socket of sockets) socket.destroy()
    sockets = Array.from({ length: count }, () => {
      const socket = connect({ port, host: '127.0.0.1', localAddress: '127.0.0.2' })
      socket.on('error', () => undefined).resume()
      if (bytes !== '') socket.write(bytes)
      return socket
    })
  }
  openAll()
  setInterval(openAll, ANEW_MS)
  if (drip !== '') setInterval(() => sockets.filter(isOpen).forEach((socket) => socket.write(drip)), DRIP_MS)
  process.on('message', () => process.send?.(`${sockets.filter(isOpen).length} of ${count} open at the end`))
}

const ANEW_MS = 30_000
const DRIP_MS = 1_000

if (process.send !== undefined && process.argv[1] === fileURLToPath(import.meta.url)) {
  const [port, kind, count] = process.argv.slice(2).map(Number)
  const crowd = CROWDS[kind ?? -1]
  if (crowd !== undefined) stand(port ?? 0, crowd, count ?? 0)
}
