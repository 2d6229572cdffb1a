// Defines templates of operations: data, allowed factors, and the texts in each language. Chooses and fills their texts (cloud §4).
import { isJsonObject, isObjectOfTexts, isTooDeep } from '../../lib/json.ts'
import { findLanguage } from '../../lib/language.ts'
import { readJson, toList } from '../../storage/database/columns.ts'
import type { TemplateContent } from '../../storage/template/templates.ts'

/** Factor combinations that may approve an operation. */
export const SIGNATURE_TYPES = ['possession', 'possession_knowledge', 'possession_biometry'] as const

export type SignatureType = (typeof SIGNATURE_TYPES)[number]

export interface Template {
  readonly templateName: string
  /** The `name` of the operation on the phone. */
  readonly operationType: string
  /** Operation data with `${parameter}` placeholders (cloud §5). */
  readonly dataTemplate: string
  readonly signatureTypes: readonly SignatureType[]
  readonly maxFailureCount: number
  readonly expirationSeconds: number
  /** Letters of X, F and C, each at most once; their order has no meaning. */
  readonly riskFlags: string
  readonly isProximityCheckEnabled: boolean
  /** The flag that an activation must have to approve. */
  readonly activationFlag: string | null
  readonly texts: TemplateTexts
}

/** The texts by language, two small letters. There is at least one. */
export type TemplateTexts = Readonly<Record<string, LocalizedTexts>>

/** The texts that a phone shows for an operation in one language. Every text may have placeholders, except labels of attributes. */
export interface LocalizedTexts {
  readonly title: string
  readonly message: string
  readonly attributes: readonly AttributeTemplate[]
  /** Free JSON (mobile-token §6). */
  readonly ui?: Readonly<Record<string, unknown>>
  readonly resultTexts?: ResultTexts
  /** The text for a push message. */
  readonly summary?: string
}

export interface ResultTexts {
  readonly success?: string
  readonly failure?: string
  readonly reject?: string
}

/** One row of the form on the phone (mobile-token §5). */
export interface AttributeTemplate {
  readonly id: string
  readonly type: string
  /** The label. */
  readonly text: string
  /** Names of operation parameters by the slot of the attribute. */
  readonly params: Readonly<Record<string, string>>
}

/** Parameters of an operation as the bank gave them. */
export type OperationParameters = Readonly<Record<string, string>>

/** Texts in one language together with the locale for numbers in them. */
interface ChosenTexts {
  /** BCP 47. */
  readonly locale: string
  readonly texts: LocalizedTexts
}

/**
 * Chooses the texts for the first of `tags` (BCP 47, most wanted first) whose language exists, else the English ones, else those of the first
 * language in the alphabet. The locale is the chosen tag, so `en-GB` keeps its region.
 */
export function chooseTexts(texts: TemplateTexts, tags: readonly string[]): ChosenTexts {
  const languages = Object.keys(texts).toSorted()
  for (const locale of [...tags, 'en', ...languages]) {
    const chosen = texts[findLanguage(languages, locale) ?? '']
    if (chosen !== undefined) return { locale, texts: chosen }
  }
  throw new TypeError('a template without texts was stored')
}

interface FilledText {
  readonly text: string
  /** Names of placeholders for which there is no parameter, each once. */
  readonly missing: readonly string[]
}

/** Replaces each placeholder by its parameter without escaping, and by empty text when the parameter is missing. */
export function fillText(text: string, parameters: OperationParameters): FilledText {
  const missing = new Set<string>()
  const filled = replacePlaceholders(text, (name) => {
    if (Object.hasOwn(parameters, name)) return parameters[name] ?? ''
    missing.add(name)
    return ''
  })
  return { text: filled, missing: [...missing] }
}

/** Replaces each placeholder by the result of `valueOf`. Placeholders in a result are not replaced. */
export const replacePlaceholders = (text: string, valueOf: (name: string) => string): string =>
  text.replace(PLACEHOLDER, (_, name: string) => valueOf(name))

/** Names of the placeholders of a text in their order, with repeats. */
export const listPlaceholders = (text: string): string[] => [...text.matchAll(PLACEHOLDER)].map(([, name = '']) => name)

/** True when every `${` begins a placeholder with a valid name. */
export const hasSoundPlaceholders = (text: string): boolean => !replacePlaceholders(text, () => ' ').includes('${')

/** The template in the form it is stored in. */
export const toTemplateContent = ({ signatureTypes, texts, ...template }: Template): TemplateContent => ({
  ...template,
  signatureTypes: signatureTypes.join(','),
  texts: JSON.stringify(texts),
})

/** The template of a stored row, without texts and factors that were altered in the database so that they are none. */
export const toTemplate = (row: TemplateContent): Template => ({
  ...row,
  signatureTypes: SIGNATURE_TYPES.filter((type) => toList(row.signatureTypes).includes(type)),
  texts: readTexts(row.texts) ?? {},
})

/** Parses the texts of a stored revision. Undefined when they were altered in the database, or have no language. */
export function readTexts(json: string): TemplateTexts | undefined {
  const value = readJson(json)
  const languages = isJsonObject(value) && !isTooDeep(value) ? Object.entries(value) : []
  const isReadable = languages.length > 0 && languages.every(([language, texts]) => /^[a-z]{2}$/.test(language) && isTexts(texts))
  return isReadable ? (value as TemplateTexts) : undefined
}

function isTexts(value: unknown): value is LocalizedTexts {
  if (!isJsonObject(value)) return false
  const { title, message, attributes, ui = {}, resultTexts = {}, summary = '' } = value
  const areParts = isObjectOfTexts({ title, message, summary }) && isJsonObject(ui) && isObjectOfTexts(resultTexts)
  return areParts && Array.isArray(attributes) && attributes.every(isAttribute)
}

function isAttribute(value: unknown): value is AttributeTemplate {
  if (!isJsonObject(value)) return false
  const { params, id, type, text } = value
  return isObjectOfTexts({ id, type, text }) && isObjectOfTexts(params)
}

/**
 * True when a text has a character that changes the direction of the following text, U+202A to U+202E or U+2066 to U+2069. With it, an amount or an
 * account could look different from the signed one (Unicode TR 36 §2.5). Marks like U+200F, which right-to-left text needs, are allowed.
 */
export const hasDirectionChange = (text: string): boolean => /[\u202A-\u202E\u2066-\u2069]/.test(text)

// A name has no white space and no control characters, none of `${}`, and none of `*\`, which end fields. It has no colon, so `${name:-default}` of
// other systems is not a placeholder.
const PLACEHOLDER = /\$\{([^\s${}*\\:\p{Cc}]{1,255})\}/gu

const common = {
  maxFailureCount: 5,
  expirationSeconds: 300,
  riskFlags: '',
  isProximityCheckEnabled: false,
  activationFlag: null,
} as const

export const PAYMENT_TEMPLATE: Template = {
  ...common,
  templateName: 'payment',
  operationType: 'authorize_payment',
  dataTemplate: 'A1*A${amount}${currency}*I${iban}',
  signatureTypes: ['possession_knowledge', 'possession_biometry'],
  texts: {
    en: {
      title: 'Payment',
      message: 'Please confirm the payment',
      attributes: [
        { id: 'operation.amount', type: 'AMOUNT', text: 'Amount', params: { amount: 'amount', currency: 'currency' } },
        { id: 'operation.account', type: 'KEY_VALUE', text: 'To account', params: { value: 'iban' } },
      ],
    },
  },
}

/** The templates of a new installation, so that operations can be created at once. */
export const SHIPPED_TEMPLATES: readonly Template[] = [
  {
    ...common,
    templateName: 'login',
    operationType: 'login',
    dataTemplate: 'A2',
    signatureTypes: ['possession_knowledge', 'possession_biometry'],
    texts: { en: { title: 'Login', message: 'Please confirm the login', attributes: [] } },
  },
  PAYMENT_TEMPLATE,
  {
    ...common,
    templateName: 'account_new',
    operationType: 'account_new',
    dataTemplate: 'A3*R${challenge}',
    signatureTypes: ['possession_knowledge'],
    texts: { en: { title: 'New account', message: 'Please confirm the opening of a new account', attributes: [] } },
  },
]
