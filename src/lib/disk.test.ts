// The room of a disk is known for a folder, and unknown where the file system has no size. A disk that has become read only is told apart.
import { tmpdir } from 'node:os'
import { expect, test } from 'vitest'
import { readFreeBytes, requireWritable } from './disk.ts'

test('a folder has room', async () => {
  expect(await readFreeBytes(tmpdir())).toBeGreaterThan(0)
})

test.each(['/proc', '/nowhere'])('the room of %s is unknown, and not none', async (path) => {
  expect(await readFreeBytes(path)).toBeUndefined()
})

test('a folder that can be written is, and one that is gone is not', async () => {
  await expect(requireWritable(tmpdir())).resolves.toBeUndefined()
  await expect(requireWritable('/nowhere')).rejects.toThrow('ENOENT')
})

test.each([
  ['EROFS', false],
  ['EIO', false],
  ['EPERM', true],
  ['EACCES', true],
  ['ENOSYS', true],
])('where times cannot be set because of %s, a folder can be written: %s', async (code, isWritable) => {
  const checked = requireWritable(tmpdir(), () => Promise.reject(Object.assign(new Error(code), { code })))
  if (isWritable) await expect(checked).resolves.toBeUndefined()
  else await expect(checked).rejects.toThrow(code)
})
