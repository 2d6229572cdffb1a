// Prepares the database and the phones with which each simulation begins, once for all, and chooses the first seed.
import { execFileSync } from 'node:child_process'
import { createHash } from 'node:crypto'
import { globSync, readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'

export function setup(): void {
  execFileSync(process.execPath, [fileURLToPath(new URL('prepare-main.ts', import.meta.url))], { stdio: 'inherit' })
  process.env['PAWL_SIM_FIRST'] ??= String(firstSeed())
}

/** Makes the first seed from the sources: changed sources get new seeds, and a failed run of the same sources fails again. */
function firstSeed(): number {
  const root = fileURLToPath(new URL('../..', import.meta.url))
  const hash = createHash('sha256')
  for (const file of globSync('{src,migrations,phone,test/sim}/**/*.{ts,sql,json}', { cwd: root }).sort())
    hash.update(file).update(readFileSync(`${root}/${file}`))
  return hash.digest().readUIntBE(0, 4)
}
