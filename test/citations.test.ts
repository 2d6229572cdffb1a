// Citations in comments and documents lead somewhere: to a section of docs/spec, to a heading, to a file.
import { existsSync, globSync, readFileSync } from 'node:fs'
import { dirname, join, posix } from 'node:path'
import { fileURLToPath } from 'node:url'
import { describe, expect, test } from 'vitest'

const root = fileURLToPath(new URL('..', import.meta.url))
const readText = (path: string): string => readFileSync(join(root, path), 'utf8')

/** The specifications by the word that cites them, each with the text of its sections by number. */
const specifications = new Map(
  globSync('docs/spec/*.md', { cwd: root }).map((path) => [posix.basename(path, '.md'), sectionsOf(readText(path))]),
)

function sectionsOf(document: string): ReadonlyMap<string, string> {
  const parts = document.split(/^#{2,6} (?=\d)/m).slice(1)
  return new Map(parts.map((part) => [/^\d+(?:\.\d+)*/.exec(part)?.[0] ?? '', part]))
}

/** Comments go on over the end of a line: the text without line breaks and without the marks that begin a line of a comment. */
const unwrap = (text: string): string => text.replaceAll(/\s*\n\s*(?:\/\/+|\*(?!\/)|--|#+)?[ \t]*/g, ' ')

/** Sections of public documents, which everybody can find. */
const STANDARD = /(?:RFC \d+|FIPS \d+(?:-\d+)?|SEC 1|SP 800-\w+|TR 36) §[\d.]*\d(?:(?:,| to| and) §[\d.]*\d)*/g
/** `v3 §10.5`, `v4 §7.4, step 5`, `cloud §5, §6.1 to §6.4`. Groups: specification, sections, step. */
const CITATION = /\b(\w[\w-]*) (§\d[\d.]*(?:(?:,? to|,? and|,? or|,) §\d[\d.]*)*)(?:,? step (\d+))?/g

interface Problem {
  readonly citation: string
  readonly problem: string
}

/** What the text cites and nobody finds. */
function problemsOf(wrapped: string): readonly Problem[] {
  // Links among the specifications are checked as links.
  const text = unwrap(wrapped.replaceAll(/\[§[^\]]*\]\([^)]*\)/g, '')).replaceAll(STANDARD, '')
  const found = [...text.matchAll(CITATION)]
  const problems = found.flatMap(([citation, name = '', sections = '', step]) => {
    const specification = specifications.get(name)
    if (specification === undefined) return [{ citation, problem: 'there is no such specification' }]
    const numbers = [...sections.matchAll(/\d+(?:\.\d+)*/g)].map(([number]) => number)
    const missing = numbers.filter((number) => !specification.has(number)).map((number) => `there is no §${number}`)
    const isStepMissing =
      step !== undefined && !new RegExp(`^(?:\\| )?${step}\\. `, 'm').test(specification.get(numbers.at(-1) ?? '') ?? '')
    return [...missing, ...(isStepMissing ? [`there is no step ${step}`] : [])].map((problem) => ({ citation, problem }))
  })
  const rest = text.replaceAll(CITATION, '')
  const nameless = [...rest.matchAll(/.{0,20}§\s?\w{0,5}/g)].map(([citation]) => ({ citation, problem: 'of which document?' }))
  return [...problems, ...nameless, ...headingProblemsOf(text)]
}

/** `ARCHITECTURE, "Invariants"`: a document of the repository and one of its headings. */
function headingProblemsOf(text: string): readonly Problem[] {
  const quoted = [...text.matchAll(/\b([A-Z]{3,})(?:\.md)?,? (?:"([^"]+)"|decisions? [\d ,to]*\d)/g)].filter(([, name = '']) =>
    names.has(name),
  )
  const seeds = [...text.matchAll(/\bseed "[^"]*"/g)].map(([citation]) => ({ citation, problem: 'no reader has it' }))
  return quoted
    .filter(([, name = '', heading]) => {
      const path = [`${name}.md`, `docs/${name}.md`].find((candidate) => existsSync(join(root, candidate)))
      return path === undefined || heading === undefined || !headingsOf(readText(path)).includes(heading)
    })
    .map(([citation]) => ({ citation, problem: 'there is no such heading' }))
    .concat(seeds)
}

/** Documents as comments call them. */
const names = new Set(globSync(['*.md', 'docs/*.md'], { cwd: root }).map((path) => posix.basename(path, '.md')))

/** Without the diffs of CONTRIBUTING.md, whose citations are checked where they are applied (test/process/contributing.test.ts). */
const withoutDiffs = (document: string): string => document.replaceAll(/^```diff.*?^```/gms, '')

const withoutCode = (document: string): string => document.replaceAll(/^```.*?^```/gms, '')

const headingsOf = (document: string): readonly string[] =>
  [...withoutCode(document).matchAll(/^#{1,6} (.+)$/gm)].map(([, heading = '']) => heading.trim())

/** Anchors that stand in the text itself, as those of the rows of DIVERGENCES do. */
const markedAnchorsOf = (document: string): readonly string[] =>
  [...withoutCode(document).matchAll(/<a id="([^"]+)">/g)].map(([, anchor = '']) => anchor)

/** Whether a link to this anchor of the document leads anywhere. */
const hasAnchor = (document: string, anchor: string): boolean =>
  markedAnchorsOf(document).includes(anchor) || headingsOf(document).some((heading) => anchorOf(heading) === anchor)

/** The anchor that a heading gets where Markdown is shown. */
const anchorOf = (heading: string): string =>
  heading
    .toLowerCase()
    .replaceAll(/[^\p{L}\p{N}\s_-]/gu, '')
    .replaceAll(/\s/g, '-')

const sources = [
  ...globSync('{src,test,phone,bench,migrations,scripts}/**/*.{ts,mjs,js,sql}', { cwd: root }),
  ...globSync(['*.md', 'docs/**/*.md', 'bench/results/*.md'], { cwd: root }),
].filter((path) => path !== 'test/citations.test.ts')
const documents = sources.filter((path) => path.endsWith('.md'))

describe('citations', () => {
  test('every cited section, step and heading exists', () => {
    const wrong = sources.flatMap((path) =>
      problemsOf(withoutDiffs(readText(path))).map(({ citation, problem }) => `${path}: ${citation.trim()}: ${problem}`),
    )
    expect(wrong).toEqual([])
  })

  test('code cites each of the specifications, so that the search finds citations at all', () => {
    const code = sources.filter((path) => path.startsWith('src/')).map((path) => unwrap(readText(path)))
    const cited = new Set(code.flatMap((text) => [...text.matchAll(CITATION)].map(([, name]) => name)))
    expect([...specifications.keys()].toSorted()).toEqual(['cloud', 'mobile-token', 'utility', 'v3', 'v4'])
    expect([...cited].filter((name = '') => specifications.has(name)).toSorted()).toEqual([...specifications.keys()].toSorted())
  })

  test.each([
    ['a section that does not exist', '// Checks it (v3 §99.1).', 'there is no §99.1'],
    ['the second of two sections', '// Checks it (v3 §9.1, §99).', 'there is no §99'],
    ['a section on the next line', '// Checks it (v3 §9.1,\n// §99).', 'there is no §99'],
    ['a step that does not exist', '// Checks it (v4 §7.4, step 77).', 'there is no step 77'],
    ['a specification that does not exist', '// Checks it (v9 §1).', 'there is no such specification'],
    ['a section of nothing', '// Checks it (§1).', 'of which document?'],
    ['a heading that does not exist', '// Checks it (ARCHITECTURE, "Nowhere").', 'there is no such heading'],
    ['a numbered decision', '// Checks it (README, decisions 1 to 3).', 'there is no such heading'],
    ['a document that readers do not have', '// Spec: seed "Errors".', 'no reader has it'],
  ])('%s is found', (_, text, problem) => {
    expect(problemsOf(text).map((found) => found.problem)).toEqual([problem])
  })

  test('sections, steps, headings and public standards that exist are no problem', () => {
    const text =
      '// v3 §9.1, §10.5 to §10.7; v4 §7.4, step 5; cloud §6.2 and mobile-token §4.5, step 1, after RFC 9110 §12.5.4 (ARCHITECTURE, "Invariants").'
    expect(problemsOf(text)).toEqual([])
  })
})

describe('specifications', () => {
  test.each([...specifications.keys()])('the sections of %s stand in order, each once', (name) => {
    const headings = headingsOf(readText(`docs/spec/${name}.md`)).slice(1)
    const numbers = headings.map((heading) => /^(\d+(?:\.\d+)?)\.? \S/.exec(heading)?.[1] ?? heading)
    const inOrder = [...new Set(numbers)].toSorted((a, b) => a.localeCompare(b, 'en', { numeric: true }))
    expect(numbers).toEqual(inOrder)
  })

  test.each([...specifications.keys()])('what %s says of its own sections leads to them', (name) => {
    const text = withoutCode(readText(`docs/spec/${name}.md`)).replaceAll(/\[[^\]]*\]\([^)]*\)/g, '')
    const own = [...text.matchAll(/\bsections? (\d+(?:\.\d+)*)/g)].map(([, number = '']) => number)
    expect(own.filter((number) => !specifications.get(name)?.has(number))).toEqual([])
  })

  test('every example of JSON is JSON', () => {
    const wrong = globSync('docs/spec/*.md', { cwd: root }).flatMap((path) =>
      [...readText(path).matchAll(/^```json\n(.*?)^```/gms)]
        .flatMap(([, block = '']) => (/^\{.*\}\n\{/s.test(block) ? block.trimEnd().split('\n') : [block]))
        .filter((example) => !isJson(example))
        .map((example) => `${path}: ${example}`),
    )
    expect(wrong).toEqual([])
  })

  test('no line of prose leaves its span of code open', () => {
    const wrong = globSync('docs/spec/*.md', { cwd: root }).flatMap((path) =>
      withoutCode(readText(path))
        .split('\n')
        .filter((line) => line.split('`').length % 2 === 0)
        .map((line) => `${path}: ${line}`),
    )
    expect(wrong).toEqual([])
  })
})

function isJson(text: string): boolean {
  try {
    JSON.parse(text)
    return true
  } catch {
    return false
  }
}

describe('links', () => {
  test('every anchor of a link between documents exists', () => {
    const wrong = documents.flatMap((path) =>
      [...withoutCode(readText(path)).matchAll(/\]\((?!https?:|mailto:)([^)#\s]*)#([^)\s]+)\)/g)]
        .filter(([, target = '', anchor = '']) => {
          const file = target === '' ? path : join(dirname(path), target)
          return !existsSync(join(root, file)) || !hasAnchor(readText(file), anchor)
        })
        .map(([link]) => `${path}: ${link}`),
    )
    expect(wrong).toEqual([])
  })

  test('every row that code cites as DIVERGENCES#row exists', () => {
    const wrong = sources.flatMap((path) =>
      [...unwrap(readText(path)).matchAll(/\bDIVERGENCES(?:\.md)?#([\w-]+)/g)]
        .filter(([, anchor = '']) => !hasAnchor(readText('docs/DIVERGENCES.md'), anchor))
        .map(([citation]) => `${path}: ${citation}`),
    )
    expect(wrong).toEqual([])
  })

  test('every row of DIVERGENCES has an anchor of its own', () => {
    const text = readText('docs/DIVERGENCES.md')
    const rows = [...text.matchAll(/^\| (?!point \|)(.*)$/gm)].map(([, row = '']) => row)
    expect(rows.length).toBeGreaterThan(100)
    expect(rows.filter((row) => !/^<a id="[a-z0-9-]+"><\/a>/.test(row))).toEqual([])
    const anchors = [...markedAnchorsOf(text), ...headingsOf(text).map(anchorOf)]
    expect(anchors.filter((anchor, index) => anchors.indexOf(anchor) !== index)).toEqual([])
  })
})
