// A base URL that ends with a slash gives `//api/…`, as an old SDK sends it (mobile-token §1).
import { afterAll, beforeAll, expect, test } from 'vitest'
import { type Holder, type OperationWorld, startOperationWorld } from '../helpers/operation-world.ts'
import { expectError } from '../helpers/expectations.ts'
import { member } from '../../phone/http.ts'
import { expectOk } from '../helpers/world.ts'

let world: OperationWorld
let holder: Holder
beforeAll(async () => {
  world = await startOperationWorld()
  holder = await world.holder('3.3')
})
afterAll(() => world.close())

test.each(['/', '//', '////'])('%s in front of the mobile token API are one too many', async (slashes) => {
  const { phone, token, userId } = holder
  const operation = await world.operation(userId)
  const list = await phone.prepareTokenCall('list', token)
  const listed = expectOk(await phone.send({ ...list, path: slashes + list.path }))
  expect(member(listed.json, 'responseObject')).toEqual([expect.objectContaining({ id: operation.id })])
  const authorize = phone.prepareAuthorize(operation)
  expectOk(await phone.send({ ...authorize, path: `${slashes}${authorize.path}?x=//y` }))
  expectError(await phone.send({ ...phone.prepareReject(operation.id), path: `${slashes}/api/unknown` }), 404, 'ERROR_NOT_FOUND')
})

test.each([
  '/api//auth/token/app/operation/list',
  '//apis/auth/token/app/operation/list',
  '/%2Fapi/auth/token/app/operation/list',
  '//pa/v3/signature/validate',
  '//admin/users',
  '//health/live',
  '//console/',
  '//',
])('no other slash is: %s', async (path) => {
  const list = await holder.phone.prepareTokenCall('list', holder.token)
  const reply = await holder.phone.send({ ...list, path })
  expect(reply.status).toBe(404)
})
