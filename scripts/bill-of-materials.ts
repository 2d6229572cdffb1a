// Lists the packages that pawl runs with, without those that only its development needs: writes a CycloneDX document and a list of licences.
// Fails on a licence that nobody has agreed to.
import { execFileSync } from 'node:child_process'
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { runCommand } from './command-line.ts'

interface Component {
  readonly 'bom-ref': string
  readonly name: string
  readonly version: string
  readonly properties?: readonly { readonly name: string }[]
  readonly purl: string
  readonly licenses?: readonly { readonly license?: { readonly id?: string }; readonly expression?: string }[]
}

/** SPDX expressions of licences that demand no more than naming the authors. */
const AGREED = ['0BSD', 'Apache-2.0', 'BSD-2-Clause', 'BSD-3-Clause', 'BlueOak-1.0.0', 'ISC', 'MIT', '(MIT OR Apache-2.0)']
/** Licences of packages whose package.json names them in words of its own, according to their LICENSE file. */
const MISNAMED: Readonly<Record<string, string>> = { 'htmx.org': '0BSD' }

interface Bill {
  readonly components: readonly Component[]
  readonly dependencies: readonly { readonly ref: string; readonly dependsOn: readonly string[] }[]
}

/** Removes packages that npm marks as only for development. npm's --omit=dev also omits a package of pawl that a tool needs, too. */
function withoutDevelopment({ components, dependencies, ...rest }: Bill): Bill {
  const isTool = ({ properties = [] }: Component): boolean =>
    properties.some(({ name }) => name === 'cdx:npm:package:development')
  const tools = new Set(components.filter(isTool).map((one) => one['bom-ref']))
  return {
    ...rest,
    components: components.filter((one) => !tools.has(one['bom-ref'])),
    dependencies: dependencies
      .filter(({ ref }) => !tools.has(ref))
      .map(({ ref, dependsOn }) => ({ ref, dependsOn: dependsOn.filter((one) => !tools.has(one)) })),
  }
}

const project = fileURLToPath(new URL('..', import.meta.url))

const licenceOf = ({ name, licenses: [first] = [] }: Component): string =>
  first?.expression ?? first?.license?.id ?? MISNAMED[name] ?? 'unknown'

function writeBill(folder: string): void {
  const { version } = JSON.parse(readFileSync(join(project, 'package.json'), 'utf8')) as { readonly version: string }
  const command = ['sbom', '--sbom-format=cyclonedx']
  const whole = JSON.parse(execFileSync('npm', command, { cwd: project, encoding: 'utf8', maxBuffer: OUTPUT_BYTES_MAX })) as Bill
  const { components, ...bill } = withoutDevelopment(whole)
  const rows = components
    .map((one) => ({ ...one, licence: licenceOf(one) }))
    .toSorted((a, b) => a.purl.localeCompare(b.purl, 'en'))
  mkdirSync(folder, { recursive: true })
  writeFileSync(join(folder, 'pawl.cdx.json'), `${JSON.stringify({ ...bill, components }, null, 2)}\n`)
  const lines = rows.map((one) => `| ${one.name} | ${one.version} | ${one.licence} |`)
  writeFileSync(
    join(folder, 'licences.md'),
    `${[`# What pawl ${version} is made of`, '', '| package | version | licence |', '|---|---|---|', ...lines].join('\n')}\n`,
  )
  process.stdout.write(`${rows.length} packages: ${join(folder, 'pawl.cdx.json')}, ${join(folder, 'licences.md')}\n`)
  const refused = rows.filter(({ licence }) => !AGREED.includes(licence))
  if (refused.length > 0)
    throw new Error(`nobody has agreed to ${refused.map((one) => `the licence ${one.licence} of ${one.name}`).join(', ')}`)
}

const OUTPUT_BYTES_MAX = 64 * 1024 * 1024

await runCommand(
  {
    usage: `Writes pawl.cdx.json (CycloneDX) and licences.md into a folder, sbom if none is named:
  node scripts/bill-of-materials.ts [FOLDER]`,
    wordsMax: 1,
  },
  ({ words: [folder = 'sbom'] }) => writeBill(folder),
)
