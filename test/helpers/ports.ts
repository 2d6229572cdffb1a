// Finds ports for servers that stop and start again at the same address. The system does not give these ports to others meanwhile.
import { createServer } from 'node:net'

/**
 * A port of 127.0.0.1 where nobody listens. It is below the ports that the system gives to connections and to servers that ask for any port, and
 * among the few ports of this process, so it stays free until it is used.
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

// Linux gives out ports from 32768 on.
const FIRST_PORT = 16_384
const PORTS_OF_PROCESS = 32
const PROCESSES = 500
let next = 0
