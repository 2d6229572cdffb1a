// Puts the server of tests of whole processes into a few files, as the image has it: each of their many starts takes a sixth less processor time.
import { execFileSync } from 'node:child_process'
import { createHash } from 'node:crypto'
import {
  cpSync,
  existsSync,
  globSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  utimesSync,
} from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'

const project = fileURLToPath(new URL('../..', import.meta.url))
/** Outside of the sources, and below the packages that the files import. */
const bundles = join(project, 'node_modules/.cache/pawl-bundles')
const MADE_OF = ['bin/**', 'cli/fault.ts', 'migrations/**', 'package.json', 'package-lock.json', 'scripts/bundle.ts', 'src/**']
const OLD_MS = 24 * 3_600_000

/** Sets PAWL_TEST_BUNDLE, which workers inherit: a folder that has the server of these sources, compiled, and its bin/pawl.mjs. */
export function setup(): void {
  const place = join(bundles, digestOfSources())
  if (!existsSync(place)) make(place)
  // Bundles that are in use are not old.
  utimesSync(place, new Date(), new Date())
  process.env['PAWL_TEST_BUNDLE'] = place
}

/** Makes the folder under another name first, because two runs may need it at a time. */
function make(place: string): void {
  const making = `${place}.${process.pid}`
  mkdirSync(making, { recursive: true })
  for (const old of readdirSync(bundles).map((name) => join(bundles, name)))
    if (Number(statSync(old, { throwIfNoEntry: false })?.mtimeMs) < Date.now() - OLD_MS)
      rmSync(old, { recursive: true, force: true })
  runNode('scripts/bundle.ts', join(making, 'dist'))
  for (const name of ['bin', 'package.json']) cpSync(join(project, name), join(making, name), { recursive: true })
  try {
    renameSync(making, place)
  } catch (error) {
    // Another run was faster.
    if (!existsSync(place)) throw error
    rmSync(making, { recursive: true })
  }
  // What Node has compiled is kept by its path.
  runNode(join(place, 'bin/compile.mjs'))
}

const runNode = (...args: readonly string[]): Buffer => execFileSync(process.execPath, args, { cwd: project })

function digestOfSources(): string {
  const hash = createHash('sha256')
  for (const path of globSync(MADE_OF, { cwd: project, exclude: ['**/*.test.ts'] }).toSorted())
    if (statSync(join(project, path)).isFile()) hash.update(`${path}\n`).update(readFileSync(join(project, path)))
  return hash.digest('hex').slice(0, 16)
}
