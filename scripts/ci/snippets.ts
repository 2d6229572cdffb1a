// Compiles the lines of docs/start/app-developer.md for React Native with the types of the package that the page names.
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { type CheckedServer, project, runToEnd } from './server.ts'

const PAGE = 'docs/start/app-developer.md'
const OPTIONS = {
  strict: true,
  noUnusedLocals: true,
  noEmit: true,
  module: 'esnext',
  moduleResolution: 'bundler',
  target: 'es2022',
  lib: ['es2022', 'dom'],
  types: [],
  // Declarations of the package refer to files that the package does not contain.
  skipLibCheck: true,
}

/** Throws when the page has no such lines, or when they do not compile. */
export async function checkSnippets({ folder }: Pick<CheckedServer, 'folder'>): Promise<void> {
  const page = readFileSync(join(project, PAGE), 'utf8')
  const [, sdk] = /`npm install (react-native-powerauth-mobile-sdk@[\d.]+)`/.exec(page) ?? []
  const snippets = [...page.matchAll(/^```ts\n([^]*?)^```$/gm)].map(([, lines = '']) => lines)
  if (sdk === undefined || snippets.length === 0) throw new Error(`${PAGE} names no package, or has no lines of TypeScript`)
  const place = join(folder, 'react-native')
  mkdirSync(place)
  writeFileSync(join(place, 'package.json'), JSON.stringify({ name: 'app', private: true, type: 'module' }))
  const files = snippets.map((lines, index) => {
    writeFileSync(join(place, `snippet-${index}.ts`), lines)
    return `snippet-${index}.ts`
  })
  writeFileSync(join(place, 'tsconfig.json'), JSON.stringify({ compilerOptions: OPTIONS, files }))
  // React Native itself is not installed, because the package's types do not need it.
  await runToEnd(
    'npm',
    ['install', '--no-audit', '--no-fund', '--ignore-scripts', '--legacy-peer-deps', sdk, 'typescript@5.9.3'],
    place,
  )
  await runToEnd('npx', ['tsc', '--project', '.'], place)
  process.stdout.write(`${PAGE}: compiled against ${sdk}\n`)
}
