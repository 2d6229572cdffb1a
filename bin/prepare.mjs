// Installs missing packages, so that one command is enough on a fresh clone. Runs before `npm start` and `npm test`, under any
// Node from 20 on. It always installs everything, development tools included: there is one state to check, and `npm test`
// after `npm start` has nothing left to do.
import { spawnSync } from 'node:child_process'
import { existsSync, readFileSync, rmSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { explainNode, isRecentEnough, mayHelp } from './node-version.mjs'

const root = fileURLToPath(new URL('..', import.meta.url))

if (!mayHelp(process.versions.node)) refuse()
if (!isInstalled() || !hasNode()) install()
if (!hasNode()) refuse(true)
// A checkout runs its sources, so an old bundle must not be in their way (scripts/bundle.ts).
rmSync(`${root}/dist`, { recursive: true, force: true })

/** Whether pawl has a Node to run on: this one, or the one of an optional package, which an installation may leave out. */
function hasNode() {
  return isRecentEnough(process.versions.node) || existsSync(`${root}/node_modules/.bin/node`)
}

function refuse(isTried = false) {
  console.error(explainNode(process, isTried))
  process.exit(1)
}

/**
 * True when node_modules has the packages of the lock file. Contents are compared, not times, because the times of a copied
 * or restored tree mean nothing. Packages for other platforms are optional and never in both.
 */
function isInstalled() {
  const wanted = readPackages('package-lock.json')
  const present = readPackages('node_modules/.package-lock.json')
  if (wanted === undefined || present === undefined) return false
  return Object.entries(wanted).every(([path, { version, integrity, optional }]) => {
    const found = present[path]
    if (path === '' || (found === undefined && optional)) return true
    return found !== undefined && found.version === version && found.integrity === integrity
  })
}

/** The `packages` of a lock file; undefined when there is no file, as after an interrupted installation. */
function readPackages(path) {
  try {
    return JSON.parse(readFileSync(`${root}/${path}`, 'utf8')).packages
  } catch {
    return undefined
  }
}

function install() {
  console.error('Installing dependencies (a minute or two, only this time) ...')
  // It uses the npm that runs this script, if any. `npm ci` runs none of pawl's scripts, so nothing recurses.
  const npm = process.env.npm_execpath?.endsWith('npm-cli.js') ? [process.execPath, process.env.npm_execpath] : ['npm']
  const [command, ...first] = npm
  const { status, error } = spawnSync(command, [...first, 'ci', '--include=dev', '--include=optional'], {
    cwd: root,
    stdio: ['ignore', 2, 2],
  })
  if (status === 0) return
  console.error(`Dependencies could not be installed${error ? ` (${error.message})` : ''}: run "npm ci" to see why`)
  process.exit(1)
}
