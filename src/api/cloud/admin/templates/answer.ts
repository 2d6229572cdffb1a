// A template as the endpoints show it (cloud §4).
import { Type } from '@sinclair/typebox'
import { warnOfDataTemplate } from '../../../../domain/template/operation-data.ts'
import { renderTemplate } from '../../../../domain/template/parser.ts'
import { type SignatureType, type Template, type TemplateTexts, toTemplate } from '../../../../domain/template/template.ts'
import type { TemplateRow, TemplateSource } from '../../../../storage/templates.ts'
import { named } from '../../../../http/types.ts'

/** One set of factors that may approve. */
export const signatureType = Type.Unsafe<SignatureType>(
  Type.String({ enum: ['possession', 'possession_knowledge', 'possession_biometry'] }),
)

const TextsAnswer = Type.Unsafe<TemplateTexts>(
  Type.Record(
    Type.String(),
    Type.Object({
      title: Type.String(),
      message: Type.String(),
      attributes: Type.Array(
        Type.Object({
          id: Type.String(),
          type: Type.String(),
          text: Type.String(),
          params: Type.Record(Type.String(), Type.String()),
        }),
      ),
      ui: Type.Optional(Type.Unknown()),
      resultTexts: Type.Optional(
        Type.Object({
          success: Type.Optional(Type.String()),
          failure: Type.Optional(Type.String()),
          reject: Type.Optional(Type.String()),
        }),
      ),
      summary: Type.Optional(Type.String()),
    }),
  ),
)

export const TemplateAnswer = named(
  'Template',
  Type.Object({
    templateName: Type.String(),
    operationType: Type.String(),
    dataTemplate: Type.String(),
    signatureType: Type.Array(signatureType),
    maxFailureCount: Type.Integer(),
    expiration: Type.Integer(),
    riskFlags: Type.String(),
    proximityCheckEnabled: Type.Boolean(),
    activationFlag: Type.Optional(Type.String()),
    texts: TextsAnswer,
    source: Type.Unsafe<TemplateSource>(
      Type.String({ enum: ['shipped', 'file', 'administration'], description: 'who wrote it last' }),
    ),
    warning: Type.Optional(Type.String({ description: 'what some phones cannot do with it' })),
  }),
)

/** A value of TemplateAnswer. */
export function toTemplateAnswer(template: Template, source: TemplateSource) {
  const warning = warnOfDataTemplate(template.dataTemplate)
  return { ...renderTemplate(template), source, ...(warning !== undefined && { warning }) }
}

/** The same of a row. */
export const toRowAnswer = (row: TemplateRow) => toTemplateAnswer(toTemplate(row), row.source)
