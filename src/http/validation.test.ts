// Tests the refusal of a body that does not match its schema: one violation for each fault (cloud §1.2).
import { type TSchema, Type } from '@sinclair/typebox'
import fastify from 'fastify'
import { describe, expect, test } from 'vitest'
import { PawlError, type Violation } from '../lib/errors.ts'
import { OptionalOrNull } from './types.ts'
import { compileParser, useStrictValidation } from './validation.ts'

const judge = judgeBodies(
  Type.Object({
    parameters: OptionalOrNull(Type.Record(Type.String(), Type.String({ pattern: '^.{0,3}$', description: 'must be short' }))),
    list: OptionalOrNull(Type.Array(OptionalOrNull(Type.Object({ a: Type.String(), b: OptionalOrNull(Type.Integer()) })))),
    basic: OptionalOrNull(Type.Object({ user: Type.String(), more: OptionalOrNull(Type.Object({ deep: Type.Boolean() })) })),
    text: OptionalOrNull(Type.Union([Type.String(), Type.Array(Type.String())])),
    status: Type.Optional(Type.Literal('DEAD')),
  }),
)

/** The violations of a body, as a route with this schema finds them. */
function judgeBodies(body: TSchema): (value: unknown) => Promise<readonly Violation[]> {
  const app = fastify()
  useStrictValidation(app)
  app.post('/', { schema: { body }, attachValidation: true }, async ({ validationError: error }) =>
    error instanceof PawlError ? error.violations : [],
  )
  return async (value) => (await app.inject({ method: 'POST', url: '/', payload: value as object })).json()
}

describe('a hint', () => {
  const judgeTexts = judgeBodies(
    Type.Object({
      long: Type.Optional(Type.String({ minLength: 2, description: 'must be two characters or more' })),
      name: Type.Optional(Type.String({ minLength: 1 })),
      named: Type.Optional(
        Type.Record(Type.String({ pattern: '^[a-z]$' }), Type.String(), {
          additionalProperties: false,
          description: 'must have names of one letter',
        }),
      ),
    }),
  )

  test.each([
    [{ long: 'x' }, 'long', 'must be two characters or more'],
    [{ name: '' }, 'name', 'must not be blank'],
    [{ named: { '': 'x' } }, 'named', 'must have names of one letter'],
  ])('of %j says what is wrong', async (body, fieldName, hint) => {
    expect(await judgeTexts(body)).toMatchObject([{ fieldName, hint }])
  })
})

describe('a member that may be null', () => {
  test.each<[unknown, [string, string][]]>([
    [{ parameters: { amount: 12.5 } }, [['parameters.amount', 'must be string']]],
    [{ parameters: { a: null } }, [['parameters.a', 'must be string']]],
    [{ parameters: { a: 'long' } }, [['parameters.a', 'must be short']]],
    [
      { parameters: { a: ['x'], b: {}, c: 'x' } },
      [
        ['parameters.a', 'must be string'],
        ['parameters.b', 'must be string'],
      ],
    ],
    [{ parameters: { 'a/b~c~1': 5 } }, [['parameters.a/b~c~1', 'must be string']]],
    [{ parameters: 5 }, [['parameters', 'must be object']]],
    [{ parameters: [] }, [['parameters', 'must be object']]],
    [{ list: [{ a: 1 }] }, [['list.0.a', 'must be string']]],
    [{ list: [null, {}] }, [['list.1.a', 'must be present']]],
    [
      { list: [5, { a: 'x', b: 'y' }] },
      [
        ['list.0', 'must be object'],
        ['list.1.b', 'must be integer'],
      ],
    ],
    [{ basic: { user: 'u', more: { deep: 'yes' } } }, [['basic.more.deep', 'must be boolean']]],
    [
      { basic: { more: {} } },
      [
        ['basic.user', 'must be present'],
        ['basic.more.deep', 'must be present'],
      ],
    ],
    [{ text: 5 }, [['text', 'must be string']]],
    [{ status: 'ALIVE' }, [['status', 'must be DEAD']]],
  ])('has one violation for each fault of %j', async (value, expected) => {
    expect((await judge(value)).map(({ fieldName, hint }) => [fieldName, hint])).toEqual(expected)
  })

  test('may be null', async () => {
    expect(await judge({ parameters: null, list: [null, { a: '', b: null }], basic: null, text: null })).toEqual([])
  })
})

test('a secret is never repeated, whatever it is sent as', async () => {
  const names = ['basic', 'clientSecret', 'otp', 'password', 'pem', 'privateKey', 'secret']
  const judgeSecrets = judgeBodies(Type.Object(Object.fromEntries(names.map((name) => [name, Type.Object({})]))))
  const given = Object.fromEntries(names.map((name) => [name, 'a text that nobody else may see']))
  expect(await judgeSecrets(given)).toEqual(names.map((fieldName) => ({ fieldName, hint: 'must be object' })))
})

test('of thousands of wrong members 64 are named', async () => {
  const parameters = Object.fromEntries(Array.from({ length: 5_000 }, (_, i) => [`p${i}`, i]))
  const violations = await judge({ parameters })
  expect([violations.length, violations.at(-1)?.fieldName]).toEqual([64, 'parameters.p63'])
})

test('a parser stops at the first wrong member of a body with thousands', () => {
  const parse = compileParser(Type.Object({ list: Type.Array(Type.String()) }))
  const violations = [{ fieldName: 'list.0', invalidValue: '1', hint: 'must be string' }]
  expect(() => parse({ list: Array.from({ length: 5_000 }, () => 1) })).toThrow(expect.objectContaining({ violations }))
})
