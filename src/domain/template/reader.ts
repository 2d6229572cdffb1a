// Templates as creations of operations read them: from memory for a moment, so that a creation is one trip to the database.
import { type Caches, createCaches, createMemory } from '../../lib/memory.ts'
import type { Platform } from '../../lib/platform.ts'
import type { Db } from '../../storage/database/database.ts'
import { findTemplate, type TemplateRow } from '../../storage/template/templates.ts'

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
