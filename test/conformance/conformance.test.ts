// Runs every vector file below PAWL_VECTORS, or below test/vectors. Versions are told apart by what the file says.
import { readdirSync, readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { describe, expect, test } from 'vitest'
import { toBase64 } from '../../src/lib/base64.ts'
import { v3Families } from './v3-families.ts'
import { type Handler, isMembers, list, type Members, members, text, type Vector } from './vector.ts'

interface Family {
  readonly version: string
  readonly name: string
  readonly cases: readonly unknown[]
}

const ownFolder = fileURLToPath(new URL('../vectors', import.meta.url))
const folder = process.env['PAWL_VECTORS'] ?? ownFolder
const families = readFamilies(folder)
const [served, notServed] = [families.filter(isServed), families.filter((family) => !isServed(family))]

describe('conformance with the test vectors', () => {
  test('there are vectors to run', () => {
    expect(served.length).toBeGreaterThan(0)
  })

  test.skipIf(folder !== ownFolder)('the vectors of the repository cover every family that is not published elsewhere', () => {
    const ran = new Set(served.map(({ name }) => name))
    const missing = Object.keys(v3Families).filter((name) => !name.startsWith('public-') && !ran.has(name))
    expect(missing).toEqual([])
  })

  test.each(served.map((family) => [family.version, family.name, family] as const))('%s %s', async (version, name, family) => {
    const handler = v3Families[name]
    if (!handler) throw new Error(`no handler for family ${name} of version ${version}`)
    let count = 0
    for (const vector of family.cases.map(readVector)) {
      await runVector(handler, vector)
      count += 1
    }
    expect(count, 'cases run').toBeGreaterThan(0)
    report(`${version} ${name} ${count} cases`)
  })

  test('families of versions that are not served are listed', () => {
    for (const { version, name, cases } of notServed) {
      report(`${version} ${name} ${cases.length} cases not run: protocol ${version} is not served`)
    }
  })
})

async function runVector(handler: Handler, vector: Vector): Promise<void> {
  const actual = await compute(handler, vector)
  const names = Object.keys(vector.output)
  expect(names.length, `${vector.id}: outputs`).toBeGreaterThan(0)
  for (const name of names) {
    expect(actual, `${vector.id}: computed outputs`).toHaveProperty([name])
    expect(toComparable(actual[name]), `${vector.id}: ${name}`).toEqual(vector.output[name])
  }
}

async function compute(handler: Handler, vector: Vector): Promise<Members> {
  try {
    return await handler(vector)
  } catch (cause) {
    throw new Error(`${vector.id}: ${String(cause)}`, { cause })
  }
}

/** Byte strings as Base64, absent values as null. */
function toComparable(value: unknown): unknown {
  if (value instanceof Uint8Array) return toBase64(value)
  return Array.isArray(value) ? value.map(toComparable) : (value ?? null)
}

function isServed({ version }: Family): boolean {
  return !version.startsWith('4')
}

function readFamilies(root: string): readonly Family[] {
  const found = new Map<string, Family>()
  for (const path of readdirSync(root, { recursive: true, encoding: 'utf8' }).toSorted()) {
    if (!path.endsWith('.json')) continue
    const file: unknown = JSON.parse(readFileSync(`${root}/${path}`, 'utf8'))
    if (!isMembers(file)) throw new TypeError(`${path} is no vector file`)
    const version = text(file, 'protocol' in file ? 'protocol' : 'protocolVersion')
    const name = text(file, 'family')
    const cases = list(file, 'vectors' in file ? 'vectors' : 'data')
    const key = `${version} ${name}`
    found.set(key, { version, name, cases: [...(found.get(key)?.cases ?? []), ...cases] })
  }
  return [...found.values()]
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
