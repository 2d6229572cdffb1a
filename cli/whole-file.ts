// Replaces a file as a whole, or not at all.
import { closeSync, fchmodSync, fsyncSync, openSync, realpathSync, renameSync, rmSync, statSync, writeFileSync } from 'node:fs'

/**
 * Writes a file and flushes it to the disk. A new file beside it takes its place when it is complete, so that a full disk leaves the old file.
 * `mode`: the permissions; by default those of the old file. A path that is no regular file, like /dev/stdout, is written to directly.
 */
export function writeWhole(path: string, text: string, mode?: number): void {
  const before = statSync(path, { throwIfNoEntry: false })
  if (before !== undefined && !before.isFile()) return writeFileSync(path, text)
  // A symbolic link stays, and the file that it leads to is replaced.
  const place = before === undefined ? path : realpathSync(path)
  const beside = `${place}.${process.pid}.new`
  const kept = mode ?? (before && before.mode & 0o777)
  rmSync(beside, { force: true })
  const file = openSync(beside, 'wx', kept)
  try {
    // The umask of the account has reduced the mode above.
    if (kept !== undefined) fchmodSync(file, kept)
    // A disk that gets full takes only a part in one call; writeFileSync goes on and then throws.
    writeFileSync(file, text)
    fsyncSync(file)
    renameSync(beside, place)
  } catch (error) {
    rmSync(beside, { force: true })
    throw error
  } finally {
    closeSync(file)
  }
}
