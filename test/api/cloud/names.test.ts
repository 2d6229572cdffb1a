// Names that no path can have: of . and .. every URL makes the path above, also when they are encoded (cloud §1.3).
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { member } from '../../../phone/http.ts'
import { createApplication } from '../../../src/domain/application/application.ts'
import { inTransaction } from '../../../src/storage/database/database.ts'
import { startTestServer, type TestServer } from '../../helpers/app.ts'
import { type Bank, createBank } from '../../helpers/bank.ts'
import { startSession } from '../../helpers/console-session.ts'
import { plainTemplate } from '../../helpers/operations.ts'
import { expectOk } from '../../helpers/world.ts'

let server: TestServer
let bank: Bank
beforeAll(async () => {
  server = await startTestServer()
  bank = createBank(server.url, `${server.admin.user}:${server.admin.password}`)
  expectOk(await bank.createApplication('my-app'))
})
afterAll(() => server.close())

/** Everything that a caller names, and that a path names from then on. */
const MAKERS: Readonly<Record<string, readonly [string, string, (name: string) => unknown]>> = {
  'an application': ['/admin/application', 'id', (id) => ({ id })],
  'an application of the mobile utility': ['/admin/apps', 'name', (name) => ({ name })],
  'a version': ['/admin/applications/my-app/versions', 'name', (name) => ({ name })],
  'a template': ['/admin/templates', 'templateName', plainTemplate],
  'a credential': ['/admin/users', 'username', (username) => ({ username, role: 'read-only' })],
  'a text of version rules': ['/admin/texts', 'messageKey', (messageKey) => ({ messageKey, language: 'en', text: 'x' })],
}

describe.each(Object.entries(MAKERS))('%s', (_, [path, fieldName, body]) => {
  test.each(['.', '..'])('is not called %s', async (name) => {
    const reply = await bank.call('POST', path, body(name))
    expect(reply.status).toBe(400)
    expect(member(reply.json, 'responseObject', 'violations')).toEqual([
      { fieldName, invalidValue: name, hint: expect.stringMatching(/, other than \. and \.\.$/) as unknown },
    ])
  })

  test.each(['...', '.x', './..', '%2e', '..\\'])('may be called %s', async (name) => {
    // One name is taken once, by whichever of the two makes applications.
    expectOk(await bank.call('POST', path, body(`${name}${path === '/admin/apps' ? '-' : ''}`)))
  })
})

test('an application that has such a name goes on', async () => {
  const { context } = server
  await inTransaction(context.db, (tx) => createApplication({ ...context, db: tx }, '.'))
  expectOk(await bank.call('GET', '/admin/application?id=.'))
  const user = { username: 'of-the-dot', role: 'integration', application: '.' }
  const { password } = expectOk(await bank.call('POST', '/admin/users', user)).json as { password: string }
  const ofDot = createBank(server.url, `of-the-dot:${password}`)
  expectOk(await ofDot.call('POST', '/registration', { userId: 'alice' }))
  expectOk(await ofDot.call('GET', '/registration?userId=alice'))
})

describe('the console', () => {
  const session = () => startSession(server.url, server.admin.user, server.admin.password)

  test.each(['new', 'check'])('shows a template that is called %s', async (name) => {
    expectOk(await bank.call('POST', '/admin/templates', plainTemplate(name)))
    const { status, text } = await (await session()).get(`/templates/${name}`)
    expect(status).toBe(200)
    expect(text).toContain(`<h1>${name}</h1>`)
    expect(text).toContain('Remove the template')
  })

  test.each(['.', '..'])('calls no other path for an item that is to be called %s', async (key) => {
    const form = { action: 'store', key, value: '1', scope: 'APPLICATION' }
    const { status, text } = await (await session()).post('/config?app=my-app', form)
    expect(status).toBe(400)
    expect(text).toContain(`${key} is no name that a path can have`)
  })
})
