// Templates as operations read them: from memory for a moment where one is created, so that it is one trip to the database. Revisions never
// change, and phones ask for the texts of theirs every few seconds.
import { type Caches, createCaches, createMemory } from '../../lib/memory.ts'
import type { Platform } from '../../lib/platform.ts'
import type { Db } from '../../storage/database/database.ts'
import { findTemplate, findTemplateTexts, type TemplateRow } from '../../storage/template/templates.ts'
import type { TemplateTexts } from './template.ts'

export interface TemplateReader {
  /** The newest revision of a template, at most a few seconds old. */
  readonly find: (templateName: string) => Promise<TemplateRow | undefined>
  /** Makes this process forget what it has read; others follow within the time of the memory. */
  readonly forget: () => void
}

/** A reader with a memory of its own. */
export function createTemplateReader(db: Db, platform: Platform, caches: Caches = createCaches()): TemplateReader {
  const memory = caches.watch(
    'templates',
    1_000,
    createMemory<TemplateRow>({ max: 1_000, ttl: MEMORY_MS, clock: () => platform.now() }),
  )
  return {
    find: async (templateName) => {
      const known = memory.get(templateName)
      if (known) return known
      // From here on, not from the answer on: another process may change it meanwhile.
      const from = platform.now()
      const template = await findTemplate(db, templateName)
      if (template) memory.set(templateName, template, { from, to: from + MEMORY_MS })
      return template
    },
    forget: () => memory.clear(),
  }
}

const MEMORY_MS = 2_000

/** Gives the texts of revisions, by revision; one query for those that are not known yet, none when all are. */
export type ReadTemplateTexts = (revisionIds: readonly string[]) => Promise<ReadonlyMap<string, TemplateTexts>>

/** The texts of one database. */
export function createTemplateTexts(db: Db, caches: Caches = createCaches()): ReadTemplateTexts {
  const known = caches.watch('template_texts', REVISIONS_MAX, createMemory<TemplateTexts>({ max: REVISIONS_MAX }))
  return async (revisionIds) => {
    const wanted = [...new Set(revisionIds)]
    const found = new Map(wanted.flatMap((id) => toEntry(id, known.get(id))))
    const unknown = wanted.filter((id) => !found.has(id))
    if (unknown.length === 0) return found
    for (const [id, json] of await findTemplateTexts(db, unknown)) {
      const texts = JSON.parse(json) as TemplateTexts
      known.set(id, texts)
      found.set(id, texts)
    }
    return found
  }
}

const toEntry = (id: string, texts: TemplateTexts | undefined): [string, TemplateTexts][] =>
  texts === undefined ? [] : [[id, texts]]

const REVISIONS_MAX = 1_000
