// Files that a command writes over: whole, or not at all.
import { closeSync, fchmodSync, fsyncSync, openSync, realpathSync, renameSync, rmSync, statSync, writeFileSync } from 'node:fs'

/**
 * Writes a file of this text, and to the disk. It is written beside its place first, so that a full disk leaves the file of before. `mode`: of
 * the file; without it, that of the file of before. What is no regular file, as /dev/stdout, is written to as it is.
 */
export function writeWhole(path: string, text: string, mode?: number): void {
  const before = statSync(path, { throwIfNoEntry: false })
  if (before !== undefined && !before.isFile()) return writeFileSync(path, text)
  // A link stays, and what it leads to is replaced.
  const place = before === undefined ? path : realpathSync(path)
  const beside = `${place}.${process.pid}.new`
  const kept = mode ?? (before && before.mode & 0o777)
  rmSync(beside, { force: true })
  const file = openSync(beside, 'wx', kept)
  try {
    // The mode above is less what the account keeps from others.
    if (kept !== undefined) fchmodSync(file, kept)
    // A disk that gets full takes a part in one call.
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
