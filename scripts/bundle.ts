// Puts the modules of the server into a few files, because at a start Node needs longer to find and link 1,360 modules than to run them
// (docs/PERFORMANCE.md, "Start and memory"). The build of the image runs it. Commands other than the server run from their sources.
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
    // The embedded database reads files beside its own modules.
    external: [/^@electric-sql\/pglite/],
    // The output includes files that a module names by `new URL('style.css', import.meta.url)`.
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
