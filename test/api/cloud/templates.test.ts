// Templates: administration, revisions, and what a start does to them (cloud §4).
import type { KyselyPlugin } from 'kysely'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { installTemplates, readTemplateFile, writeTemplate } from '../../../src/domain/template/installation.ts'
import { createTemplateReader, createTemplateTexts } from '../../../src/domain/template/reader.ts'
import { SHIPPED_TEMPLATES, type Template } from '../../../src/domain/template/template.ts'
import { StartError } from '../../../src/lib/errors.ts'
import { deleteTemplate, findTemplate, listTemplates } from '../../../src/storage/template/templates.ts'
import { type Pool, inTransaction } from '../../../src/storage/database/database.ts'
import { startTestServer, type TestServer } from '../../helpers/app.ts'
import { type Bank, createBank } from '../../helpers/bank.ts'
import { expectError } from '../../helpers/expectations.ts'
import { member } from '../../../phone/http.ts'
import { expectOk, openWorld } from '../../helpers/world.ts'

let server: TestServer
let bank: Bank
beforeAll(async () => {
  server = await startTestServer()
  bank = createBank(server.url, `${server.admin.user}:${server.admin.password}`)
})
afterAll(() => server.close())

const texts = { en: { title: 'Title', message: 'Confirm ${what}', attributes: [] } }
const template = (templateName: string, more: Record<string, unknown> = {}) => ({
  templateName,
  operationType: 'test',
  dataTemplate: 'A3*T${what}',
  signatureType: ['possession_knowledge'],
  maxFailureCount: 5,
  expiration: 300,
  texts,
  ...more,
})
const path = (name: string): string => `/admin/templates/${encodeURIComponent(name)}`
const create = (name: string, more?: Record<string, unknown>) => bank.call('POST', '/admin/templates', template(name, more))
const read = async (name: string) => (await bank.call('GET', path(name))).json
const revisionOf = async (name: string) => (await findTemplate(server.context.db, name))?.templateRevisionId

describe('administration', () => {
  test('a template that was read before a change is not remembered behind it', async () => {
    const { db, platform } = server.context
    expectOk(await create('read meanwhile'))
    const arrived = Promise.withResolvers<void>()
    const held = Promise.withResolvers<void>()
    const plugin: KyselyPlugin = {
      transformQuery: ({ node }) => node,
      async transformResult({ result }) {
        arrived.resolve()
        await held.promise
        return result
      },
    }
    const reader = createTemplateReader(db.withPlugin(plugin) as Pool, platform)
    const before = reader.find('read meanwhile')
    await arrived.promise
    expectOk(await bank.call('PUT', path('read meanwhile'), template('read meanwhile', { expiration: 301 })))
    reader.forget()
    held.resolve()
    expect(await before).toMatchObject({ expirationSeconds: 300 })
    expect(await reader.find('read meanwhile')).toMatchObject({ expirationSeconds: 301 })
    expectOk(await bank.call('DELETE', path('read meanwhile')))
  })

  test('a new installation has the shipped templates', async () => {
    const { templates } = expectOk(await bank.call('GET', '/admin/templates')).json as { templates: Record<string, unknown>[] }
    const shipped = templates.filter(({ source }) => source === 'shipped')
    expect(shipped.map(({ templateName }) => templateName)).toEqual(['account_new', 'login', 'payment'])
    expect(shipped[2]).toEqual({
      templateName: 'payment',
      operationType: 'authorize_payment',
      dataTemplate: 'A1*A${amount}${currency}*I${iban}',
      signatureType: ['possession_knowledge', 'possession_biometry'],
      maxFailureCount: 5,
      expiration: 300,
      riskFlags: '',
      proximityCheckEnabled: false,
      texts: SHIPPED_TEMPLATES.find(({ templateName }) => templateName === 'payment')?.texts,
      source: 'shipped',
    })
  })

  test('a template is created, read, replaced and deleted, whatever its name is', async () => {
    const name = `a/b ?#%ä${'x'.repeat(240)}`
    const full = template(name, {
      riskFlags: 'CX',
      proximityCheckEnabled: true,
      activationFlag: 'FLAG',
      texts: {
        en: {
          ...texts.en,
          attributes: [{ id: 'a', type: 'HEADING', text: 'H', params: {} }],
          ui: { templates: { list: [1, null, { deep: 'x' }] }, flipButtons: true },
          resultTexts: { success: 'Done' },
          summary: 'S',
        },
      },
    })
    const expected = { ...full, riskFlags: 'XC', source: 'administration' }
    expect(expectOk(await bank.call('POST', '/admin/templates', full)).json).toEqual(expected)
    expect(await read(name)).toEqual(expected)
    const changed = { ...full, templateName: null, expiration: 60, riskFlags: null, activationFlag: null }
    const answer = expectOk(await bank.call('PUT', path(name), changed)).json
    expect(answer).toMatchObject({ templateName: name, expiration: 60, riskFlags: '' })
    expect(answer).not.toHaveProperty('activationFlag')
    expect(await read(name)).toEqual(answer)
    expect(expectOk(await bank.call('DELETE', path(name))).json).toEqual({ status: 'OK' })
    expectError(await bank.call('GET', path(name)), 400, 'ERROR_ADMIN')
  })

  test('what is unknown or taken is refused and changes nothing', async () => {
    expectOk(await create('taken'))
    expectError(await create('taken', { expiration: 1 }), 400, 'ERROR_ADMIN')
    expect(await read('taken')).toMatchObject({ expiration: 300 })
    expectError(await bank.call('GET', path('nobody')), 400, 'ERROR_ADMIN')
    expectError(await bank.call('DELETE', path('nobody')), 400, 'ERROR_ADMIN')
    expectError(await bank.call('PUT', path('nobody'), template('nobody')), 400, 'ERROR_ADMIN')
    expectError(await bank.call('GET', path('nobody')), 400, 'ERROR_ADMIN')
  })

  test.each<[string, Record<string, unknown>, string]>([
    ['a missing member', { dataTemplate: undefined }, 'dataTemplate'],
    ['a wrong type', { maxFailureCount: '5' }, 'maxFailureCount'],
    ['a huge number', { expiration: 1e300 }, 'expiration'],
    ['a name with a line break', { templateName: 'a\nb' }, 'templateName'],
    ['a name that is too long', { templateName: 'x'.repeat(256) }, 'templateName'],
    ['an unknown factor', { signatureType: ['possession_knowledge_biometry'] }, 'signatureType.0'],
    ['a factor twice', { signatureType: ['possession', 'possession'] }, 'signatureType'],
    ['an unknown risk flag', { riskFlags: 'Z' }, 'riskFlags'],
    ['a broken header', { dataTemplate: 'Z9' }, 'dataTemplate'],
    ['a broken placeholder', { dataTemplate: 'A0*T${what' }, 'dataTemplate'],
    ['no language', { texts: {} }, 'texts'],
    ['a language of three letters', { texts: { eng: texts.en } }, 'texts'],
    ['a language without title', { texts: { en: { message: 'M' } } }, 'texts.en.title'],
    ['a blank title', { texts: { en: { ...texts.en, title: ' ' } } }, 'texts.en.title'],
    [
      'an unknown attribute',
      { texts: { en: { ...texts.en, attributes: [{ id: 'a', type: 'X', text: 'T' }] } } },
      'texts.en.attributes.0.type',
    ],
    ['a ui that is not an object', { texts: { en: { ...texts.en, ui: 'x' } } }, 'texts.en.ui'],
  ])('%s is refused with its violation', async (_, more, fieldName) => {
    for (const [method, url] of [
      ['POST', '/admin/templates'],
      ['PUT', path('login')],
    ] as const) {
      if (method === 'PUT' && 'templateName' in more) continue
      const { templateName, ...rest } = template('wrong', more)
      const reply = await bank.call(method, url, method === 'PUT' ? rest : { templateName, ...rest })
      expectError(reply, 400, 'ERROR_REQUEST')
      expect(member(reply.json, 'responseObject', 'violations')).toContainEqual(expect.objectContaining({ fieldName }))
    }
    expectError(await bank.call('GET', path('wrong')), 400, 'ERROR_ADMIN')
    expect(await read('login')).toMatchObject({ source: 'shipped', dataTemplate: 'A2' })
  })

  test.each(['a\u0000b', '\ud800'])('the text %j is refused anywhere', async (text) => {
    const raw = JSON.stringify(template('unstorable', { texts: { en: { ...texts.en, ui: { x: [text] } } } }))
    expectError(await bank.callRaw('POST', '/admin/templates', raw, 'application/json'), 400, 'ERROR_REQUEST')
  })

  test('names in the path are judged like names in the body', async () => {
    for (const name of ['%00', '%20', 'x'.repeat(256), '%0a']) {
      expectError(await bank.call('GET', `/admin/templates/${name}`), 400, 'ERROR_REQUEST')
      expectError(await bank.call('DELETE', `/admin/templates/${name}`), 400, 'ERROR_REQUEST')
    }
    expectError(await bank.call('PUT', path('login'), template('other')), 400, 'ERROR_REQUEST')
  })

  test('only administrators may', async () => {
    const { credentials, db } = server.context
    const user = { username: 'integrator', role: 'integration', applicationId: null, expiresAt: null } as const
    const password = await credentials.prepare('an integration password')
    await inTransaction(db, (tx) => credentials.create(tx, user, password))
    const other = bank.as('integrator:an integration password')
    expectError(await other.call('GET', '/admin/templates'), 403, 'HTTP_403')
    expectError(await other.call('POST', '/admin/templates', template('x')), 403, 'HTTP_403')
    expectError(await other.call('PUT', path('login'), template('login')), 403, 'HTTP_403')
    expectError(await other.call('DELETE', path('login')), 403, 'HTTP_403')
    expectError(await bank.as(undefined).call('GET', path('login')), 401, 'HTTP_401')
  })
})

describe('revisions', () => {
  test('a change makes a new one, the same content does not, and earlier ones keep their texts', async () => {
    expectOk(await create('revised'))
    const first = await revisionOf('revised')
    expectOk(await bank.call('PUT', path('revised'), template('revised')))
    expect(await revisionOf('revised')).toBe(first)
    const cs = { title: 'Název', message: 'Zpráva', attributes: [] }
    expectOk(await bank.call('PUT', path('revised'), template('revised', { texts: { cs, ...texts } })))
    const second = await revisionOf('revised')
    expect(second).not.toBe(first)
    expectOk(await bank.call('DELETE', path('revised')))
    const readTexts = createTemplateTexts(server.context.db)
    for (let round = 0; round < 2; round += 1) {
      const found = await readTexts([first ?? '', second ?? '', second ?? '', 'unknown'])
      expect([...found.keys()].toSorted()).toEqual([first, second].toSorted())
      expect(found.get(first ?? '')).toEqual(texts)
      expect(found.get(second ?? '')).toEqual({ cs, ...texts })
    }
  })

  test('of several that create one name at once, one does', async () => {
    const replies = await Promise.all([1, 2, 3, 4].map((expiration) => create('raced', { expiration })))
    expect(replies.map(({ status }) => status).toSorted()).toEqual([200, 400, 400, 400])
    const winner = replies.findIndex(({ status }) => status === 200)
    expect(await read('raced')).toMatchObject({ expiration: winner + 1 })
  })

  test('replacing and deleting at once leaves a whole template or none', async () => {
    expectOk(await create('contested'))
    const calls = [1, 2, 3].map((expiration) => bank.call('PUT', path('contested'), template('contested', { expiration })))
    const replies = await Promise.all([...calls, bank.call('DELETE', path('contested'))])
    for (const reply of replies) expect([200, 400]).toContain(reply.status)
    expectError(await bank.call('GET', path('contested')), 400, 'ERROR_ADMIN')
  })
})

test('an operation keeps what it was made from, the next one is made from what was written just before', async () => {
  const admin = `${server.admin.user}:${server.admin.password}`
  const world = await openWorld({ urls: [server.url], admin, advance: () => undefined, close: async () => undefined })
  const { userId } = await world.activePhone('3.3')
  const begin = (what: Record<string, string>) =>
    bank.call('POST', '/operations', { userId, template: 'living', parameters: what })
  const readFirst = () => bank.call('GET', `/operations?operationId=${String(member(first.json, 'operationId'))}`)
  expectError(await begin({}), 400, 'ERROR_REQUEST')
  expectOk(await create('living'))
  const first = expectOk(await begin({ what: 'a' }))
  expect(first.json).toMatchObject({ operationType: 'test', maxFailureCount: 5 })
  expectOk(await bank.call('PUT', path('living'), template('living', { operationType: 'other', maxFailureCount: 2 })))
  expect(expectOk(await begin({ what: 'a' })).json).toMatchObject({ operationType: 'other', maxFailureCount: 2 })
  expectOk(await bank.call('DELETE', path('living')))
  const refused = await begin({ what: 'a' })
  expectError(refused, 400, 'ERROR_REQUEST')
  expect(member(refused.json, 'responseObject', 'violations')).toEqual([expect.objectContaining({ fieldName: 'template' })])
  expect(expectOk(await readFirst()).json).toMatchObject({ operationType: 'test', maxFailureCount: 5, status: 'PENDING' })
})

describe('a start', () => {
  const names = async (source: string) =>
    (await listTemplates(server.context.db)).flatMap((row) => (row.source === source ? [row.templateName] : []))
  const [login] = SHIPPED_TEMPLATES as readonly [Template]
  const ofFile = (templateName: string, more: Partial<Template> = {}): Template => ({ ...login, templateName, ...more })

  test('writes the templates of the file, and deletes those that left it', async () => {
    expectOk(await create('by-hand'))
    await installTemplates(server.context, [ofFile('f1'), ofFile('f2'), ofFile('by-hand')])
    expect(await names('file')).toEqual(['by-hand', 'f1', 'f2'])
    const kept = await revisionOf('f2')
    await installTemplates(server.context, [ofFile('f2')])
    expect(await names('file')).toEqual(['f2'])
    expect(await revisionOf('f2')).toBe(kept)
    await installTemplates(server.context, undefined)
    expect(await names('file')).toEqual(['f2'])
    await installTemplates(server.context, [])
    expect(await names('file')).toEqual([])
  })

  test('lets the file win over what was written by hand since', async () => {
    await installTemplates(server.context, [ofFile('won', { expirationSeconds: 77 })])
    expectOk(await bank.call('PUT', path('won'), template('won')))
    expect(await read('won')).toMatchObject({ source: 'administration', expiration: 300 })
    await installTemplates(server.context, [ofFile('won', { expirationSeconds: 77 })])
    expect(await read('won')).toMatchObject({ source: 'file', expiration: 77 })
    await installTemplates(server.context, [])
  })

  test('brings new shipped texts to those that nobody wrote, and no deleted one back', async () => {
    expectOk(await bank.call('PUT', path('login'), template('login')))
    await deleteTemplate(server.context.db, 'account_new')
    const newer = SHIPPED_TEMPLATES.map((shipped) => ({ ...shipped, expirationSeconds: 301 }))
    await installTemplates(server.context, undefined, newer)
    expect(await names('shipped')).toEqual(['payment'])
    expect(await read('payment')).toMatchObject({ expiration: 301 })
    expect(await read('login')).toMatchObject({ source: 'administration', expiration: 300 })
    expectError(await bank.call('GET', path('account_new')), 400, 'ERROR_ADMIN')
  })

  test('gives account_new a number that every SDK takes, unless somebody has written it', async () => {
    const shipped = SHIPPED_TEMPLATES.find(({ templateName }) => templateName === 'account_new')
    if (shipped === undefined) throw new Error('nothing is shipped')
    const older = { ...shipped, dataTemplate: 'A0*R${challenge}' }
    const write = (source: 'shipped' | 'administration') =>
      inTransaction(server.context.db, (tx) => writeTemplate(tx, server.context.platform, older, source))
    await write('shipped')
    await installTemplates(server.context, undefined)
    expect(await read('account_new')).toMatchObject({ dataTemplate: 'A3*R${challenge}', source: 'shipped' })
    expect(member(await read('account_new'), 'warning')).toBeUndefined()
    await write('administration')
    await installTemplates(server.context, undefined)
    const warning = expect.stringContaining('3 to 99')
    expect(await read('account_new')).toMatchObject({ dataTemplate: older.dataTemplate, source: 'administration', warning })
  })

  test.each([
    ['A0', true],
    ['A0*T${what}', true],
    ['A0*N', true],
    ['A1*A1EUR*I${what}', false],
    ['A2', false],
    ['A3', false],
    ['A10*T${what}', false],
    ['A99*T', false],
  ])('warns of the data %s: %s', async (dataTemplate, isWarned) => {
    const name = `warned of ${dataTemplate}`
    const warning = isWarned ? expect.stringContaining('number 0') : undefined
    expect(member(expectOk(await create(name, { dataTemplate })).json, 'warning')).toEqual(warning)
    expect(member(expectOk(await bank.call('PUT', path(name), template(name, { dataTemplate }))).json, 'warning')).toEqual(
      warning,
    )
    const { templates } = expectOk(await bank.call('GET', '/admin/templates')).json as { templates: Record<string, unknown>[] }
    expect(templates.find(({ templateName }) => templateName === name)?.['warning']).toEqual(warning)
    await installTemplates(server.context, [ofFile(name, { dataTemplate })])
    expect(
      server
        .log()
        .split('\n')
        .some((line) => line.includes('3 to 99') && line.includes(`"${name}"`)),
    ).toBe(isWarned)
    await installTemplates(server.context, [])
  })

  test('of several processes at once does what one does', async () => {
    const file = Array.from({ length: 5 }, (_entry, index) => ofFile(`together-${index}`))
    await Promise.all([file, file, file, file].map((templates) => installTemplates(server.context, templates)))
    expect(await names('file')).toEqual(file.map(({ templateName }) => templateName))
    const revisions = server.context.db.selectFrom('template_revision').select('template_revision_id')
    expect(await revisions.where('template_name', 'like', 'together-%').execute()).toHaveLength(5)
    await installTemplates(server.context, [])
  })
})

describe('a file of templates', () => {
  const directory = mkdtempSync(join(tmpdir(), 'pawl-templates-'))
  afterAll(() => rmSync(directory, { recursive: true, force: true }))
  const write = (content: string | Buffer): string => {
    const file = join(directory, 'templates.json')
    writeFileSync(file, content)
    return file
  }
  const problemOf = (file: string): string => {
    try {
      readTemplateFile(file)
      return 'none'
    } catch (error) {
      return error instanceof StartError ? error.message : `not a StartError: ${String(error)}`
    }
  }

  test('is read as the example of the documentation shows it', async () => {
    const documentation = readFileSync(new URL('../../../docs/TEMPLATES.md', import.meta.url), 'utf8')
    const [, example = ''] = /```json\n([^]*?)```/.exec(documentation) ?? []
    const [transfer] = readTemplateFile(write(example))
    expect(transfer).toMatchObject({ templateName: 'transfer', riskFlags: 'XF', expirationSeconds: 600 })
    const [json] = JSON.parse(example) as [Record<string, unknown>]
    expectOk(await bank.call('POST', '/admin/templates', json))
    expect(await read('transfer')).toEqual({ ...json, source: 'administration' })
  })

  test.each<[string, string | Buffer, RegExp]>([
    ['in Latin-1', Buffer.from(JSON.stringify([template('caf\u00e9')]), 'latin1'), / is no UTF-8 text$/],
    ['that is not JSON', '[{"a":\n\n1,}]', /is not JSON: /],
    ['that is not a list', '{}', /is not a JSON list$/],
    [
      'with an unsound template',
      JSON.stringify([template('good'), template('bad', { dataTemplate: 'Z', riskFlags: 'Z' })]),
      /is wrong in template 2 "bad": dataTemplate must be .* \(and 1 more\)$/,
    ],
    ['with something else in it', '[7]', /is wrong in template 1: body must be an object$/],
    ['with one name twice', JSON.stringify([template('twin'), template('twin')]), /has the template "twin" twice$/],
  ])('%s is refused in one line', (_title, content, expected) => {
    const problem = problemOf(write(content))
    expect(problem).toMatch(expected)
    expect(problem).not.toContain('\n')
  })

  test('that cannot be read is refused in one line', () => {
    expect(problemOf(join(directory, 'missing.json'))).toMatch(/missing\.json does not exist$/)
    expect(problemOf(directory)).toMatch(/ is a folder$/)
  })
})
