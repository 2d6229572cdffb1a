// Puts the modules that the server loads into a few files, because Node needs longer to find and link 1,360 of them than to run what they say at a
// start (docs/PERFORMANCE.md, "Start and memory"). The image is made with it. Commands beside the server run from their sources.
import { rmSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { rolldown } from 'rolldown'
import { runCommand } from './command-line.ts'

const project = fileURLToPath(new URL('..', import.meta.url))

async function writeBundle(folder: string): Promise<void> {
  rmSync(folder, { recursive: true, force: true })
  const bundle = await rolldown({
    input: { main: join(project, 'src/main.ts'), heavy: join(project, 'src/crypto/heavy.ts') },
    cwd: project,
    platform: 'node',
    // The embedded database reads files that lie beside its own modules.
    external: [/^@electric-sql\/pglite/],
    // Files that a module names by `new URL('style.css', import.meta.url)` come along.
    experimental: { resolveNewUrlToAsset: true },
  })
  const { output } = await bundle.write({ dir: folder, entryFileNames: '[name].js', chunkFileNames: '[name].js' })
  await bundle.close()
  process.stdout.write(`${output.length} files: ${folder}\n`)
}

await runCommand(
  {
    usage: `Puts the server's modules into a few files, in the folder dist if none is named; bin/pawl.mjs runs what is in dist:
  node scripts/bundle.ts [FOLDER]`,
    wordsMax: 1,
  },
  ({ words: [folder = join(project, 'dist')] }) => writeBundle(folder),
)
