// The room of a disk is known for a folder, and unknown where the file system has no size.
import { tmpdir } from 'node:os'
import { expect, test } from 'vitest'
import { readFreeBytes } from './free-bytes.ts'

test('a folder has room', async () => {
  expect(await readFreeBytes(tmpdir())).toBeGreaterThan(0)
})

test.each(['/proc', '/nowhere'])('the room of %s is unknown, and not none', async (path) => {
  expect(await readFreeBytes(path)).toBeUndefined()
})
