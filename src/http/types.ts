// Schemas that several APIs use.
import { type TSchema, Type } from '@sinclair/typebox'

/** `{ "requestObject": ... }` (v3 §5.1). */
export const ObjectRequest = <S extends TSchema>(schema: S) => Type.Object({ requestObject: schema })

/** `{ "status": "OK", "responseObject": ... }` (v3 §5.1). */
export const ObjectResponse = <S extends TSchema>(schema: S) =>
  Type.Object({ status: Type.Literal('OK'), responseObject: schema })

/** `{ "status": "OK" }`. */
export const Ok = Type.Object({ status: Type.Literal('OK') }, { title: 'Ok' })

/** The value of ObjectResponse. */
export const ok = <T>(responseObject: T) => ({ status: 'OK' as const, responseObject })

/** Text with at least one character that is not white space. */
export const NotBlank = (max: number) =>
  Type.String({ pattern: `^(?=[^]*\\S)[^]{1,${max}}$`, description: `must be 1 to ${max} characters, not blank` })

/** Any text up to `max` UTF-16 code units. */
export const Text = (max: number) => Type.String({ pattern: `^[^]{0,${max}}$`, description: `must be at most ${max} characters` })

/** The schema with a value that the description of the APIs shows. */
export const withExample = <S extends TSchema>(schema: S, example: unknown): S => ({ ...schema, examples: [example] })

/** The schema under a name of its own in the description of the APIs, wherever it stands. */
export const named = <S extends TSchema>(title: string, schema: S): S => ({ ...schema, title })

/** JSON null counts as absent (v3 §1.2). */
export const OptionalOrNull = <S extends TSchema>(schema: S) => Type.Optional(Type.Union([schema, Type.Null()]))

/** A JSON object with members of any name: the default pattern of a record ends at a line break. */
export const AnyMembers = Type.Record(Type.String({ pattern: '^[\\s\\S]*$' }), Type.Unknown())
