// Ports for servers that go down and come up again at the same address: the system does not hand them out to others meanwhile.
import { createServer } from 'node:net'

/**
 * A port of 127.0.0.1 where nobody listens. It lies below those that are given to connections and to servers that ask for any port, and
 * among the few that belong to this process, so it stays free until it is used.
 */
export async function findQuietPort(): Promise<number> {
  for (let tried = 0; tried < PORTS_OF_PROCESS; tried += 1) {
    const port = FIRST_PORT + (process.pid % PROCESSES) * PORTS_OF_PROCESS + (next++ % PORTS_OF_PROCESS)
    if (await isFree(port)) return port
  }
  throw new Error('every port of this process is in use')
}

const isFree = (port: number): Promise<boolean> =>
  new Promise((resolve) => {
    const server = createServer()
    server.once('error', () => resolve(false))
    server.listen(port, '127.0.0.1', () => server.close(() => resolve(true)))
  })

// Linux hands out ports from 32768 on.
const FIRST_PORT = 16_384
const PORTS_OF_PROCESS = 32
const PROCESSES = 500
let next = 0
