// Takes an image of an embedded database in memory, and puts the database back to it. All that such a database is lies in two places: the memory of
// its WebAssembly instance, and the files and open descriptors of Emscripten's file system.
import type { PGlite } from '@electric-sql/pglite'

type Bytes = Uint8Array | Int8Array

/** A file, folder, link or device. `contents`: the bytes of a file, or the nodes of a folder by name. */
interface Node {
  contents?: Bytes | Record<string, Node>
  /** The next node in the same place of the table of names. */
  name_next?: Node
}

interface Stream {
  readonly node: Node
  readonly shared: object
}

interface Files {
  readonly root: Node
  readonly nameTable: (Node | undefined)[]
  readonly streams: (Stream | null | undefined)[]
  nextInode: number
}

/** Puts the database back to the image. False when it cannot be: then it must not be used any more. */
export type PutBack = () => boolean

/** Takes the image. No statement may run meanwhile, nor while the database is put back. */
export function takeImage(pglite: PGlite): PutBack {
  const { FS, HEAPU8, stackSave } = pglite.Module
  const stack = stackSave()
  const putBackMemory = imageOfMemory(HEAPU8)
  const putBackFiles = imageOfFiles(FS as unknown as Files)
  return () => {
    // More memory is another buffer, and a stack that is in use belongs to a statement.
    if (pglite.Module.HEAPU8.buffer !== HEAPU8.buffer || stackSave() !== stack) return false
    putBackMemory()
    putBackFiles()
    return true
  }
}

/** Compares before it writes: most memory was never used, and a write would make the machine provide it. */
function imageOfMemory(memory: Uint8Array): () => void {
  const pieces: { readonly now: Buffer; readonly saved: Buffer }[] = []
  for (let at = 0; at < memory.length; at += PIECE) {
    const now = Buffer.from(memory.buffer, at, PIECE)
    pieces.push({ now, saved: now.equals(EMPTY) ? EMPTY : Buffer.from(now) })
  }
  return () => {
    for (const { now, saved } of pieces) if (!now.equals(saved)) now.set(saved)
  }
}

function imageOfFiles(files: Files): () => void {
  const { nextInode } = files
  const names = [...files.nameTable]
  const streams = files.streams.map((stream) => stream && { stream, fields: { ...stream }, shared: { ...stream.shared } })
  const open = streams.flatMap((entry) => (entry ? [entry.stream.node] : []))
  const nodes = new Set([files.root, ...names.flatMap(chainFrom), ...open])
  const putBackNodes = [...nodes].map(imageOfNode)
  return () => {
    for (const putBack of putBackNodes) putBack()
    files.nameTable.splice(0, Infinity, ...names)
    files.streams.splice(0, Infinity, ...streams.map((entry) => entry && restoreStream(entry)))
    files.nextInode = nextInode
  }
}

const restoreStream = ({ stream, fields, shared }: { stream: Stream; fields: object; shared: object }): Stream => {
  Object.assign(stream, fields)
  Object.assign(stream.shared, shared)
  return stream
}

const isBytes = (contents: NonNullable<Node['contents']>): contents is Bytes => ArrayBuffer.isView(contents)

/** The nodes in one place of the table of names. */
function chainFrom(first: Node | undefined): readonly Node[] {
  const nodes: Node[] = []
  for (let node = first; node !== undefined; node = node.name_next) nodes.push(node)
  return nodes
}

function imageOfNode(node: Node): () => void {
  const fields = { ...node }
  const { contents } = fields
  if (contents === undefined) return () => void Object.assign(node, fields)
  if (!isBytes(contents)) {
    const entries = { ...contents }
    return () => void Object.assign(node, fields, { contents: { ...entries } })
  }
  const bytes = contents.slice()
  return () => {
    Object.assign(node, fields)
    contents.set(bytes)
  }
}

const PIECE = 65_536
const EMPTY = Buffer.alloc(PIECE)
