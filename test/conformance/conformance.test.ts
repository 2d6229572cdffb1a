// Runs every vector file below PAWL_VECTORS, or below test/vectors. Versions are told apart by what the file says.
import { readdirSync, readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { describe, expect, test } from 'vitest'
import { toBase64 } from '../../src/lib/base64.ts'
import { CASES } from './counts.ts'
import { v3Families } from './v3-families.ts'
import { v4Families } from './v4-families.ts'
import { isMembers, list, type Members, members, text, type Vector } from './vector.ts'

interface VectorFile {
  /** Below the folder of vectors. */
  readonly path: string
  readonly version: string
  readonly name: string
  readonly cases: readonly unknown[]
}

const ownFolder = fileURLToPath(new URL('../vectors', import.meta.url))
const folder = process.env['PAWL_VECTORS'] ?? ownFolder
const files = readFiles(folder)

describe('conformance with the test vectors', () => {
  // Published vectors lie beside the others elsewhere only.
  test('every file there should be is there', () => {
    const due = Object.keys(CASES).filter((path) => folder !== ownFolder || !path.includes('/public-'))
    expect(files.map(({ path }) => path).toSorted()).toEqual(due.toSorted())
  })

  test.skipIf(folder !== ownFolder)('the vectors of the repository cover every family that is not published elsewhere', () => {
    const ran = new Set(files.map(({ version, name }) => `${isV4(version) ? 'v4' : 'v3'} ${name}`))
    const known = [...Object.keys(v3Families).map((name) => `v3 ${name}`), ...Object.keys(v4Families).map((name) => `v4 ${name}`)]
    expect(known.filter((name) => !name.startsWith('v3 public-') && !ran.has(name))).toEqual([])
  })

  test.each(files.map((file) => [file.path, file] as const))('%s', async (path, { version, name, cases }) => {
    const run = isV4(version) ? runV4 : runV3
    let count = 0
    for (const vector of cases) {
      await run(name, vector)
      count += 1
    }
    expect(count, 'cases run').toBe(CASES[path])
    report(`${version} ${name} ${count} cases`)
  })
})

const isV4 = (version: string): boolean => version.startsWith('4')

async function runV3(name: string, value: unknown): Promise<void> {
  const handler = v3Families[name]
  if (!handler) throw new Error(`no handler for family ${name} of version 3`)
  const vector = readVector(value)
  const actual = await compute(vector.id, () => handler(vector))
  compare(vector.id, actual, vector.output, Object.keys(vector.output))
}

/** Inputs and outputs of v4 vectors stand side by side: the handler knows which are outputs. */
async function runV4(name: string, vector: unknown): Promise<void> {
  const handler = v4Families[name]
  if (!handler || !isMembers(vector)) throw new Error(`no handler for family ${name} of version 4`)
  const id = text(vector, 'id')
  const actual = await compute(id, () => handler(vector))
  // Public vectors have fewer members than ours.
  const names = Object.keys(actual).filter((output) => output in vector)
  compare(id, actual, vector, names)
}

function compare(id: string, actual: Members, expected: Members, names: readonly string[]): void {
  expect(names.length, `${id}: outputs`).toBeGreaterThan(0)
  for (const name of names) {
    expect(actual, `${id}: computed outputs`).toHaveProperty([name])
    expect(toComparable(actual[name]), `${id}: ${name}`).toEqual(expected[name])
  }
}

async function compute(id: string, run: () => Members | Promise<Members>): Promise<Members> {
  try {
    return await run()
  } catch (cause) {
    throw new Error(`${id}: ${String(cause)}`, { cause })
  }
}

/** Byte strings as Base64, absent values as null, absent members as absent. */
function toComparable(value: unknown): unknown {
  if (value instanceof Uint8Array) return toBase64(value)
  if (Array.isArray(value)) return value.map(toComparable)
  if (!isMembers(value)) return value ?? null
  const present = Object.entries(value).filter(([, member]) => member !== undefined)
  return Object.fromEntries(present.map(([name, member]) => [name, toComparable(member)]))
}

function readFiles(root: string): readonly VectorFile[] {
  const paths = readdirSync(root, { recursive: true, encoding: 'utf8' }).filter((path) => path.endsWith('.json'))
  return paths.toSorted().map((path) => {
    const file: unknown = JSON.parse(readFileSync(`${root}/${path}`, 'utf8'))
    if (!isMembers(file)) throw new TypeError(`${path} is no vector file`)
    const version = text(file, 'protocol' in file ? 'protocol' : 'protocolVersion')
    const name = text(file, 'family')
    return { path, version, name, cases: list(file, 'vectors' in file ? 'vectors' : 'data') }
  })
}

function readVector(value: unknown): Vector {
  if (!isMembers(value)) throw new TypeError('a case is no object')
  const group = value['group']
  return {
    id: text(value, 'id'),
    group: typeof group === 'string' ? group : undefined,
    input: members(value, 'input'),
    output: members(value, 'output'),
  }
}

const report = (line: string): boolean => process.stdout.write(`${line}\n`)
