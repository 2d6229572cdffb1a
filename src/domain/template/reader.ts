// Reads templates for operations. A template is remembered for two seconds, so that creating an operation takes one trip to the database. The texts
// of a revision never change, and phones request those of their operations every few seconds, so they are remembered without an end.
import { type Caches, createCaches, createMemory } from '../../lib/memory.ts'
import type { Platform } from '../../lib/platform.ts'
import type { Db } from '../../storage/database/database.ts'
import { findTemplate, findTemplateTexts, type TemplateRow } from '../../storage/template/templates.ts'
import { readTexts, type TemplateTexts } from './template.ts'

export interface TemplateReader {
  /** Reads the newest revision of a template, at most two seconds old. */
  readonly find: (templateName: string) => Promise<TemplateRow | undefined>
  /** Makes this process forget the templates that it has read. Other processes notice a change after two seconds. */
  readonly forget: () => void
}

/** Creates a reader with its own memory. */
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
      const clearings = memory.clearings()
      // The time begins before the query, because another process may change the template during the query.
      const from = platform.now()
      const template = await findTemplate(db, templateName)
      if (template && clearings === memory.clearings()) memory.set(templateName, template, { from, to: from + MEMORY_MS })
      return template
    },
    forget: memory.clear,
  }
}

const MEMORY_MS = 2_000

/**
 * Reads the texts of revisions by their ids. One query reads all unknown ones; no query is made when all are known. A revision whose texts were
 * altered in the database is left out.
 */
export type ReadTemplateTexts = (revisionIds: readonly string[]) => Promise<ReadonlyMap<string, TemplateTexts>>

/** Creates the reader of texts of one database. */
export function createTemplateTexts(db: Db, caches: Caches = createCaches()): ReadTemplateTexts {
  const known = caches.watch('template_texts', REVISIONS_MAX, createMemory<TemplateTexts>({ max: REVISIONS_MAX }))
  return async (revisionIds) => {
    const wanted = [...new Set(revisionIds)]
    const found = new Map(wanted.flatMap((id) => toEntry(id, known.get(id))))
    const unknown = wanted.filter((id) => !found.has(id))
    if (unknown.length === 0) return found
    for (const [id, json] of await findTemplateTexts(db, unknown)) {
      const texts = readTexts(json)
      if (texts === undefined) continue
      known.set(id, texts)
      found.set(id, texts)
    }
    return found
  }
}

const toEntry = (id: string, texts: TemplateTexts | undefined): [string, TemplateTexts][] =>
  texts === undefined ? [] : [[id, texts]]

const REVISIONS_MAX = 1_000
