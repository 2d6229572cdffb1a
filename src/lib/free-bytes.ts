// Reads how much room a disk has.
import { statfs } from 'node:fs/promises'

/** The bytes that are left on the file system of a path; undefined where it does not tell: some network file systems have no size. */
export async function readFreeBytes(path: string): Promise<number | undefined> {
  const { blocks, bavail, bsize } = await statfs(path).catch(() => NOTHING)
  return blocks === 0 ? undefined : bavail * bsize
}

const NOTHING = { blocks: 0, bavail: 0, bsize: 0 }
