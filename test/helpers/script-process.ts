// Starts processes that run a script, and steers them line by line: a process can be held at a moment at which another one acts.
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { createInterface } from 'node:readline'

const children: ChildProcess[] = []

/** Starts Node with the text of a module. */
export function startScript(script: string, env: Readonly<Record<string, string>>) {
  const child = spawn(process.execPath, ['--input-type=module', '-e', script], { stdio: ['pipe', 'pipe', 'inherit'], env })
  children.push(child)
  const lines = createInterface({ input: child.stdout })[Symbol.asyncIterator]()
  return {
    /** The next line that it prints; `undefined` at its end. */
    read: async (): Promise<string | undefined> => {
      const next = await lines.next()
      return next.done === true ? undefined : next.value
    },
    /** Sends an empty line. */
    goOn: () => child.stdin.write('\n'),
    kill: () => kill(child),
  }
}

/** Kills those that still run. */
export const killScripts = async (): Promise<void> => void (await Promise.all(children.splice(0).map(kill)))

async function kill(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return
  child.kill('SIGKILL')
  await once(child, 'exit')
}
