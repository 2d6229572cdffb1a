// Compiles everything that a start loads and keeps the result where bin/pawl.mjs looks for it; run when the image is built, by the user who
// will start it. There the file system is read-only later.
import module from 'node:module'
import { fileURLToPath } from 'node:url'

module.enableCompileCache(fileURLToPath(new URL('../node_modules/.cache/pawl', import.meta.url)))
// Beside src/main.ts, which would start a server, these are all that it imports.
for (const name of [
  'server',
  'cluster/primary',
  'cluster/worker',
  'config-parser',
  'lib/log',
  'lib/line-sink',
  'lib/start-memory',
  'tracing/otlp',
]) {
  await import(`../src/${name}.ts`)
}
module.flushCompileCache()
