// What the endpoints of templates share (cloud §4). Schemas say the structure, parseTemplate the rest.
import { Type } from '@sinclair/typebox'
import { parseTemplate, renderTemplate } from '../../../../domain/template/parser.ts'
import { type Template, toTemplate } from '../../../../domain/template/template.ts'
import { OptionalOrNull } from '../../../../http/types.ts'
import { PawlError } from '../../../../lib/errors.ts'
import type { Db } from '../../../../storage/database.ts'
import { findTemplate } from '../../../../storage/templates.ts'
import type { Audited } from '../../audited-endpoint.ts'
import { Identifier } from '../../fields.ts'
import { signatureType } from './answer.ts'

const text = (max: number, description: string) => Type.String({ pattern: `^[^]{1,${max}}$`, description })

const count = (description: string) => Type.Integer({ minimum: 1, maximum: 2_147_483_647, description })

const Attribute = Type.Object({
  id: Identifier,
  type: Type.String({
    description: 'AMOUNT, AMOUNT_CONVERSION, KEY_VALUE, NOTE, HEADING, ALERT, IMAGE or PARTY_INFO',
  }),
  text: Type.String({ description: 'label on the phone' }),
  params: OptionalOrNull(
    Type.Record(Type.String(), Identifier, { description: 'slot of the attribute to name of an operation parameter' }),
  ),
})

const LocalizedTexts = Type.Object({
  title: text(255, 'must be 1 to 255 characters, with ${parameter} placeholders'),
  message: text(4096, 'must be 1 to 4096 characters, with ${parameter} placeholders'),
  attributes: OptionalOrNull(Type.Array(Attribute, { maxItems: 100, description: 'rows of the form on the phone' })),
  ui: OptionalOrNull(
    Type.Object({}, { description: 'screens for the mobile SDK, see docs/TEMPLATES.md; texts in it may hold placeholders' }),
  ),
  resultTexts: OptionalOrNull(
    Type.Object({
      success: OptionalOrNull(Type.String()),
      failure: OptionalOrNull(Type.String()),
      reject: OptionalOrNull(Type.String()),
    }),
  ),
  summary: OptionalOrNull(Type.String({ description: 'for a push message' })),
})

/** What every template has, beside its name. */
export const templateMembers = {
  operationType: Identifier,
  dataTemplate: text(4096, 'must be 1 to 4096 characters: operation data with ${parameter} placeholders'),
  signatureType: Type.Array(signatureType, { minItems: 1, maxItems: 3, description: 'factors that may approve' }),
  maxFailureCount: count('failed approvals that end an operation'),
  expiration: count('seconds until an operation expires'),
  texts: Type.Record(Type.String(), LocalizedTexts, { description: 'by language: two small letters' }),
}

/** What it may have. */
export const optionalTemplateMembers = {
  riskFlags: OptionalOrNull(
    Type.String({ description: 'X flips the buttons, F warns of fraud, C refuses approval during a call' }),
  ),
  proximityCheckEnabled: OptionalOrNull(Type.Boolean()),
  activationFlag: OptionalOrNull(Identifier),
}

/** Of the path. */
export const OfTemplate = Type.Object({ name: Identifier })

/** How changes of a template are recorded. */
export const auditedTemplate: Audited<unknown, unknown, { readonly name: string }, unknown> = {
  target: ({ params: { name } }) => `template ${name}`,
  view: ({ params: { name }, tx }) => viewTemplate(tx, name),
}

/** The template of a body. Throws REQUEST_INVALID with everything that is wrong. */
export function readTemplate(body: unknown): Template {
  const parsed = parseTemplate(body)
  if ('template' in parsed) return parsed.template
  throw new PawlError('REQUEST_INVALID', { detail: 'the template is not sound', violations: parsed.violations })
}

/** A template for the audit log. */
export async function viewTemplate(db: Db, templateName: string) {
  const row = await findTemplate(db, templateName)
  return row && { ...renderTemplate(toTemplate(row)), source: row.source }
}

export const refuseTemplate = (detail: string) => new PawlError('ADMINISTRATION_REFUSED', { detail })
