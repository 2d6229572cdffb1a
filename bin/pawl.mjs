#!/usr/bin/env node
// Runs the command `pawl`: the server, or another command. Plain JavaScript, so that an old Node does not fail to parse it and can say what to do.
import { spawn } from 'node:child_process'
import { existsSync, realpathSync } from 'node:fs'
import module from 'node:module'
import { constants } from 'node:os'
import { fileURLToPath } from 'node:url'
import { explainNode, isRecentEnough, mayHelp } from './node-version.mjs'

// At this signal Node would open its inspector, which shows every key of the process. When runWith starts Node, --disable-sigusr1 prevents that
// from the first moment on; an older Node does not know the flag.
process.on('SIGUSR1', () => undefined)

// The server in few files, if scripts/bundle.ts has made them, as in the image. A start takes half as long with them.
const bundle = new URL('../dist/main.js', import.meta.url)
const projectNode = fileURLToPath(new URL('../node_modules/.bin/node', import.meta.url))

const words = process.argv.slice(2)
// Most processes are servers, which do not load the other commands.
const isServer = words.length === 0 || (words.length === 1 && words[0] === 'serve')

if (isRecentEnough(process.versions.node)) {
  // The cache is in the project, not in the shared /tmp, because another account could have written compiled code there.
  module.enableCompileCache(fileURLToPath(new URL('../node_modules/.cache/pawl', import.meta.url)))
  const server = existsSync(bundle) ? bundle : '../src/main.ts'
  try {
    await import(isServer ? server : '../cli/main.ts')
    module.flushCompileCache()
  } catch (error) {
    refuse(error)
  }
} else if (mayHelp(process.versions.node) && hasProjectNode()) {
  runWith(projectNode)
} else {
  console.error(explainNode(process))
  process.exitCode = 1
}

function hasProjectNode() {
  return existsSync(projectNode) && realpathSync(projectNode) !== realpathSync(process.execPath)
}

/** Explains in one line why pawl could not be loaded. The stack is only for users who ask for it. */
function refuse(error) {
  const { code, message = String(error), stack } = error ?? {}
  const [, missing] = String(code).endsWith('_NOT_FOUND') ? (/'([^']+)'/.exec(message) ?? []) : []
  const folder = fileURLToPath(new URL('..', import.meta.url))
  console.error(
    missing === undefined
      ? `pawl cannot start: ${message.replace(/\s*\n\s*/g, ' ')}; "npm ci" in ${folder} installs anew what it is made of`
      : `pawl cannot start: ${missing} is not installed; run "npm ci" in ${folder}`,
  )
  if (['debug', 'trace'].includes(process.env.PAWL_LOG_LEVEL)) console.error(stack)
  process.exit(1)
}

/** Runs this file again in another Node, with the flags of docs/decisions/0014-memory.md. Passes signals on, and ends as the child ends. */
function runWith(node) {
  const child = spawn(node, ['--disable-sigusr1', '--heap-growing-percent=30', ...process.argv.slice(1)], { stdio: 'inherit' })
  for (const signal of ['SIGTERM', 'SIGINT', 'SIGHUP']) process.on(signal, () => child.kill(signal))
  child.on('error', (error) => {
    console.error(`pawl cannot start ${node}: ${error.message}`)
    process.exitCode = 1
  })
  child.on('exit', (code, signal) => {
    if (signal === null) process.exit(code)
    process.removeAllListeners(signal)
    process.kill(process.pid, signal)
    // The first process of a container survives its own signal. Its starter gets the exit code that a shell would give.
    process.exit(128 + constants.signals[signal])
  })
}
