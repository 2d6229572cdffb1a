// What the process of probe.ts has written down so far.
import { spawn } from 'node:child_process'
import { createInterface } from 'node:readline'
import { fileURLToPath } from 'node:url'

export interface Look {
  /** When it was asked, by Date.now. */
  readonly at: number
  readonly milliseconds: number
}

export interface Looks {
  /** Milliseconds of the answers that were asked for in one of the spans, sorted. */
  readonly within: (spans: readonly { readonly from: number; readonly to: number }[]) => readonly number[]
  readonly close: () => void
}

/** Starts to ask the server at `url`. */
export function startLooking(url: string): Looks {
  const file = fileURLToPath(new URL('probe.ts', import.meta.url))
  const probe = spawn(process.execPath, [file, url], { stdio: ['ignore', 'pipe', 'inherit'] })
  const looks: Look[] = []
  createInterface(probe.stdout).on('line', (line) => looks.push(JSON.parse(line) as Look))
  return {
    within: (spans) =>
      looks
        .filter(({ at }) => spans.some(({ from, to }) => from <= at && at < to))
        .map(({ milliseconds }) => milliseconds)
        .toSorted((one, other) => one - other),
    close: () => void probe.kill(),
  }
}
