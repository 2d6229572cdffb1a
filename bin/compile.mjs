// Compiles the files of scripts/bundle.ts, all that a start loads, and stores the result where bin/pawl.mjs looks for it. The build of the image
// runs it, as the user who will start pawl, because the file system is read-only later.
import { readdirSync } from 'node:fs'
import module from 'node:module'
import { fileURLToPath } from 'node:url'

module.enableCompileCache(fileURLToPath(new URL('../node_modules/.cache/pawl', import.meta.url)))
// dist/main.js would start a server. The other files are all that it imports.
const folder = new URL('../dist/', import.meta.url)
for (const name of readdirSync(folder)) {
  if (name.endsWith('.js') && name !== 'main.js') await import(new URL(name, folder))
}
module.flushCompileCache()
