// Reads how much room a disk has, and whether it can be written.
import { stat, statfs, utimes } from 'node:fs/promises'

/** The bytes that are left on the file system of a path; undefined where it does not tell: some network file systems have no size. */
export async function readFreeBytes(path: string): Promise<number | undefined> {
  const { blocks, bavail, bsize } = await statfs(path).catch(() => NOTHING)
  return blocks === 0 ? undefined : bavail * bsize
}

/**
 * Rejects when the folder is gone, or its disk has errors or has become read only because of them. Such a disk still tells its room and grants access,
 * and only a write fails: the folder gets the times that it has. `touch` sets them.
 */
export async function requireWritable(path: string, touch: typeof utimes = utimes): Promise<void> {
  const { atime, mtime } = await stat(path)
  await touch(path, atime, mtime).catch((error: NodeJS.ErrnoException) => {
    // Any other failure says nothing about the disk: some network file systems let nobody set times.
    if (error.code === 'EROFS' || error.code === 'EIO') throw error
  })
}

/** The bytes that can still be written where a folder lies; undefined where it does not tell. Rejects as requireWritable does. */
export async function readWritableBytes(path: string): Promise<number | undefined> {
  await requireWritable(path)
  return readFreeBytes(path)
}

const NOTHING = { blocks: 0, bavail: 0, bsize: 0 }
