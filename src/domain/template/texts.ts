// The texts of template revisions, kept in memory: a revision never changes, and phones ask for their operations every few seconds.
import { type Caches, createCaches, createMemory } from '../../lib/memory.ts'
import type { Db } from '../../storage/database/database.ts'
import { findTemplateTexts } from '../../storage/template/templates.ts'
import type { TemplateTexts } from './template.ts'

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
