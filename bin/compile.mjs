// Compiles what scripts/bundle.ts has made, so everything that a start loads, and keeps the result where bin/pawl.mjs looks for it; run when the image is built, by the user who
// will start it. There the file system is read-only later.
import { readdirSync } from 'node:fs'
import module from 'node:module'
import { fileURLToPath } from 'node:url'

module.enableCompileCache(fileURLToPath(new URL('../node_modules/.cache/pawl', import.meta.url)))
// dist/main.js would start a server. Beside it these are all that it imports.
const folder = new URL('../dist/', import.meta.url)
for (const name of readdirSync(folder)) {
  if (name.endsWith('.js') && name !== 'main.js') await import(new URL(name, folder))
}
module.flushCompileCache()
