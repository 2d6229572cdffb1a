// Lends embedded databases in memory. One that comes back is put back to what it was when it was opened, because to open another costs twenty times
// as much. So the generator behind random() gives the same numbers to each borrower.
import { readFileSync } from 'node:fs'
import { PGlite } from '@electric-sql/pglite'
import type { Instance, OpenInstance } from '../../src/storage/database/embedded.ts'
import { type PutBack, takeImage } from './database-image.ts'

/** An instance of PGlite that is lent again and again. */
interface Original {
  readonly pglite: PGlite
  readonly putBack: PutBack
}

/** Those that are with nobody, by the dump that they were made of. */
const atHome = new WeakMap<Blob, Original[]>()

/** Lends a database made of the dump `template`. Its `close` gives it back. */
export const lendInstance =
  (template: Blob): OpenInstance =>
  async (options) => {
    const home = atHome.get(template) ?? []
    atHome.set(template, home)
    const original = home.pop() ?? (await makeOriginal(template, options))
    return new Lent(original, home)
  }

async function makeOriginal(template: Blob, options: Parameters<OpenInstance>[0]): Promise<Original> {
  const pglite = await PGlite.create({ ...options, loadDataDir: template })
  // A library that is loaded later would be missing in the memory of the image, and Emscripten would not load it again.
  await pglite.exec('do $$ begin end $$')
  return { pglite, putBack: takeImage(pglite) }
}

/** Behaves as PGlite does, also when it is closed: it waits for what runs, and refuses what comes later. */
class Lent implements Instance {
  readonly #original: Original
  readonly #home: Original[]
  #end: Promise<void> | undefined

  constructor(original: Original, home: Original[]) {
    this.#original = original
    this.#home = home
  }

  get closed(): boolean {
    return this.#end !== undefined
  }

  get ready(): boolean {
    return !this.closed
  }

  get waitReady(): Promise<void> {
    return this.#original.pglite.waitReady
  }

  query: Instance['query'] = (...given) => this.#run((pglite) => pglite.query(...given))
  exec: Instance['exec'] = (...given) => this.#run((pglite) => pglite.exec(...given))
  transaction: Instance['transaction'] = (work) => this.#run((pglite) => pglite.transaction(work))
  dumpDataDir: Instance['dumpDataDir'] = (...given) => this.#run((pglite) => pglite.dumpDataDir(...given))

  async close(): Promise<void> {
    if (this.closed) throw new Error('PGlite is closed')
    this.#end = this.#close()
    await this.#end
  }

  async #run<T>(work: (pglite: PGlite) => Promise<T>): Promise<T> {
    if (this.closed) throw new Error('PGlite is closed')
    return work(this.#original.pglite)
  }

  async #close(): Promise<void> {
    const { pglite, putBack } = this.#original
    // The question waits its turn behind all that was asked before.
    if ((await hasOneLibrary(pglite)) && this.#home.length < HOME_MAX && putBack()) this.#home.push(this.#original)
    else await pglite.close()
  }
}

// One takes 80 MB of resident memory.
const HOME_MAX = 4

/** False also when the session takes no statement. */
const hasOneLibrary = (pglite: PGlite): Promise<boolean> =>
  pglite.query('select from pg_get_loaded_modules()').then(
    ({ rows }) => rows.length === 1,
    () => false,
  )

/** Reads the dump of a database. */
export const readTar = (path: string): Blob => new TarFile(new Uint8Array(readFileSync(path)).buffer)

/** A Blob that returns its bytes without copying them piece by piece. */
class TarFile extends Blob {
  readonly #bytes: ArrayBuffer
  constructor(bytes: ArrayBuffer) {
    super()
    this.#bytes = bytes
  }
  override arrayBuffer(): Promise<ArrayBuffer> {
    return Promise.resolve(this.#bytes)
  }
}
