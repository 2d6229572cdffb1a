#!/usr/bin/env node
// The command `pawl`: the server, or a command beside it. Plain JavaScript, so that an old Node reads it and says what to do instead of failing to parse.
import { spawn } from 'node:child_process'
import { existsSync, realpathSync } from 'node:fs'
import module from 'node:module'
import { constants } from 'node:os'
import { fileURLToPath } from 'node:url'
import { explainNode, isRecentEnough, mayHelp } from './node-version.mjs'

// Node opens its inspector to whoever may send this signal, and the inspector shows every key of the process. Where the command line is ours,
// --disable-sigusr1 says so from the first moment on; an older Node does not know it.
process.on('SIGUSR1', () => undefined)

// The server in few files, where the image or scripts/bundle.ts has made them: a start takes half as long.
const bundle = new URL('../dist/main.js', import.meta.url)
const projectNode = fileURLToPath(new URL('../node_modules/.bin/node', import.meta.url))

const words = process.argv.slice(2)
// The server is what most processes run: it does not load the other commands.
const isServer = words.length === 0 || (words.length === 1 && words[0] === 'serve')

if (isRecentEnough(process.versions.node)) {
  // Inside the project and not in the shared /tmp: compiled code that another account could have written must never be run.
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

/** What could not even be loaded, in one line; where it comes from is for those who have asked to see everything. */
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

/** Runs this file again under another Node, with the flags of docs/decisions/0014-memory.md, hands signals on and ends as the child ends. */
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
    // Still here: the first process of a container is ended by no signal of its own. What started it reads the status as a shell writes it.
    process.exit(128 + constants.signals[signal])
  })
}
