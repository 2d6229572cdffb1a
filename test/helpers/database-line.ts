// Proxies the connections of a server to PostgreSQL. It can hold, swallow or cut a chosen statement, and silence all connections, as happens
// when a machine disappears.
import { connect, createServer, type AddressInfo, type Socket } from 'node:net'
import { readMessages } from './postgres-messages.ts'

/**
 * hold: the statement arrives HOLD_MS late, and is answered then. swallow: neither the statement nor anything later on its connection arrives, not
 * even the end. mute: like swallow, but the statement runs first. cut: the statement runs, and the connection breaks before the answer.
 */
export type LineFault = 'hold' | 'swallow' | 'mute' | 'cut'

export interface DatabaseLine {
  /** The URL of the database through this proxy. */
  readonly url: string
  /** Applies the fault to the next statement whose text matches, and resolves then. */
  readonly strike: (statement: RegExp, fault: LineFault) => Promise<void>
  /** Silences every present connection in both directions; new connections work. */
  readonly silence: () => void
  /** Sends a statement on each connection before the server's next one, and hides the answer from the server. */
  readonly smuggle: (statement: string) => void
  readonly close: () => Promise<void>
}

/** Longer than a server waits for an answer. */
export const HOLD_MS = 14_000

interface Carried {
  silence: () => void
  smuggle: (statement: string) => void
}

/** Opens a proxy to the database at `databaseUrl`. */
export async function openDatabaseLine(databaseUrl: string): Promise<DatabaseLine> {
  const target = new URL(databaseUrl)
  const sockets = new Set<Socket>()
  const carried = new Set<Carried>()
  let trap: { readonly statement: RegExp; readonly fault: LineFault; readonly met: () => void } | undefined
  const spring = (text: string): LineFault | undefined => {
    if (!trap?.statement.test(text)) return undefined
    const { fault, met } = trap
    trap = undefined
    met()
    return fault
  }
  const listener = createServer((near) => {
    const far = connect(Number(target.port || 5432), target.hostname)
    for (const socket of [near, far]) {
      sockets.add(socket)
      socket.setNoDelay(true)
      socket.on('error', () => undefined)
      socket.once('close', () => sockets.delete(socket))
    }
    const one = carry(near, far, spring)
    carried.add(one)
    near.once('close', () => carried.delete(one))
  })
  await new Promise<void>((resolve) => listener.listen(0, '127.0.0.1', resolve))
  const url = new URL(databaseUrl)
  url.hostname = '127.0.0.1'
  url.port = String((listener.address() as AddressInfo).port)
  return {
    url: url.toString(),
    strike: (statement, fault) =>
      new Promise((resolve) => {
        trap = { statement, fault, met: resolve }
      }),
    silence: () => {
      for (const one of carried) one.silence()
    },
    smuggle: (statement) => {
      for (const one of carried) one.smuggle(statement)
    },
    close: async () => {
      for (const socket of sockets) socket.destroy()
      await new Promise((resolve) => listener.close(resolve))
    },
  }
}

/** Carries one connection. The messages of a client up to a Query or Sync are one statement. */
function carry(near: Socket, far: Socket, spring: (text: string) => LineFault | undefined): Carried {
  const fromClient = readMessages(0)
  const fromServer = readMessages(1)
  const texts = new Map<string, string>()
  let isSilent = false
  let loses: 'mute' | 'cut' | undefined
  let answersToKeep = 0
  let smuggled: string | undefined
  /** Messages that wait behind a held statement. */
  let queue: Buffer[] | undefined
  let parts: Buffer[] = []
  let text = ''

  const send = (bytes: Buffer): void => {
    if (queue !== undefined) queue.push(bytes)
    else if (!isSilent && far.writable) far.write(bytes)
  }
  const release = (): void => {
    const waiting = queue ?? []
    queue = undefined
    for (const bytes of waiting) send(bytes)
    if (near.destroyed) far.end()
  }
  const pass = (statement: string, bytes: Buffer): void => {
    if (smuggled !== undefined) {
      answersToKeep += 1
      send(composeQuery(smuggled))
      smuggled = undefined
    }
    const fault = statement === '' ? undefined : spring(statement)
    if (fault === 'swallow') isSilent = true
    if (fault === 'mute' || fault === 'cut') loses = fault
    if (fault === 'hold') {
      queue = []
      setTimeout(release, HOLD_MS).unref()
    }
    send(bytes)
  }

  near.on('data', (bytes: Buffer) => {
    for (const { type, message } of fromClient(bytes)) {
      parts.push(message)
      if (type === 'P') texts.set(readText(message, 5), readText(message, 5 + readText(message, 5).length + 1))
      if (type === 'P' || type === 'B') text = texts.get(nameOf(type, message)) ?? text
      if (type === 'Q') text = readText(message, 5)
      if (PARTS.includes(type)) continue
      pass(text, Buffer.concat(parts))
      parts = []
      text = ''
    }
  })
  far.on('data', (bytes: Buffer) => {
    for (const { type, message } of fromServer(bytes)) {
      if (isSilent) return
      if (answersToKeep > 0) {
        if (type === 'Z') answersToKeep -= 1
      } else if (loses === undefined) near.write(message)
      else if (type === 'Z') lose()
    }
  })
  const lose = (): void => {
    if (loses === 'mute') isSilent = true
    else for (const socket of [near, far]) socket.destroy()
  }
  // A machine that has disappeared does not notice the end of the other side.
  near.once('close', () => {
    if (!isSilent && queue === undefined) far.end()
  })
  far.once('close', () => {
    if (!isSilent) near.destroy()
  })
  return {
    silence: () => {
      isSilent = true
    },
    smuggle: (statement) => {
      smuggled = statement
    },
  }
}

/** The name of the statement: Parse has it first, Bind after the portal. */
function nameOf(type: string, message: Buffer): string {
  const first = readText(message, 5)
  return type === 'P' ? first : readText(message, 5 + first.length + 1)
}

function readText(message: Buffer, from: number): string {
  return message.toString('latin1', from, message.indexOf(0, from))
}

function composeQuery(statement: string): Buffer {
  const text = Buffer.from(`${statement}\0`)
  const head = Buffer.alloc(5)
  head.write('Q')
  head.writeUInt32BE(text.length + 4, 1)
  return Buffer.concat([head, text])
}

// Parse, Bind, Describe, Execute, Close, Flush: a Sync ends them.
const PARTS = ['P', 'B', 'D', 'E', 'C', 'H']
