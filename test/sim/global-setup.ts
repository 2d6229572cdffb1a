// Once a run of simulations: the database and the phones that each of them begins with, and the seed of the first.
import { execFileSync } from 'node:child_process'
import { randomInt } from 'node:crypto'
import { fileURLToPath } from 'node:url'

export function setup(): void {
  execFileSync(process.execPath, [fileURLToPath(new URL('prepare-main.ts', import.meta.url))], { stdio: 'inherit' })
  process.env['PAWL_SIM_FIRST'] ??= String(randomInt(1_000_000_000))
}
