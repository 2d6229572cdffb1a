// npm run bench [-- KIND] [OPTIONS]: what requests cost over HTTP when no kind is named, or one of the others.
const KINDS: Readonly<Record<string, () => Promise<unknown>>> = {
  http: () => import('./http.ts'),
  crypto: () => import('./crypto.ts'),
}

const [kind = ''] = process.argv.slice(2)
const isNamed = kind !== '' && !kind.startsWith('-')
if (isNamed) process.argv.splice(2, 1)
const run = KINDS[isNamed ? kind : 'http']
if (run === undefined) {
  process.stderr.write(`no benchmark is called ${kind}: ${Object.keys(KINDS).join(', ')}\n`)
  process.exit(1)
}
await run()
