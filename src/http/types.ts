// Declares schemas that several APIs use.
import { type ObjectOptions, type StringOptions, type TSchema, Type } from '@sinclair/typebox'

/** `{ "requestObject": ... }` (v3 §5.1). */
export const ObjectRequest = <S extends TSchema>(schema: S) => Type.Object({ requestObject: schema })

/** `{ "status": "OK", "responseObject": ... }` (v3 §5.1). */
export const ObjectResponse = <S extends TSchema>(schema: S) =>
  Type.Object({ status: Type.Literal('OK'), responseObject: schema })

export const Ok = Type.Object({ status: Type.Literal('OK') }, { title: 'Ok' })

export const ok = <T>(responseObject: T) => ({ status: 'OK' as const, responseObject })

/** Text with at least one character that is not white space. */
export const NotBlank = (max: number) =>
  Type.String({ pattern: `^(?=[^]*\\S)[^]{1,${max}}$`, description: `must be 1 to ${max} characters, not blank` })

/** Any text up to `max` UTF-16 code units. */
export const Text = (max: number) => Type.String({ pattern: `^[^]{0,${max}}$`, description: `must be at most ${max} characters` })

export const OneOf = <const T extends string>(values: readonly T[], options: StringOptions = {}) =>
  Type.Unsafe<T>(Type.String({ enum: [...values], ...options }))

export const withExample = <S extends TSchema>(schema: S, example: unknown): S => ({ ...schema, examples: [example] })

/** A schema with a name of its own in the OpenAPI document. */
export const named = <S extends TSchema>(title: string, schema: S): S => ({ ...schema, title })

/** An optional member; JSON null counts as absent (v3 §1.2). */
export const OptionalOrNull = <S extends TSchema>(schema: S) => Type.Optional(Type.Union([schema, Type.Null()]))

/** A JSON object with members of any name and of one schema. The default pattern of a record does not match names with a line break. */
export const MembersOf = <S extends TSchema>(schema: S, options: ObjectOptions = {}) =>
  Type.Record(Type.String({ pattern: '^[\\s\\S]*$' }), schema, options)

export const AnyMembers = MembersOf(Type.Unknown())
