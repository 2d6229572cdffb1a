// The schema of a template's JSON (cloud §4). A `description` is the text of the error for a value that does not match.
import { FormatRegistry, type Static, Type } from '@sinclair/typebox'
import { isForPaths, isIdentifier } from '../../lib/identifier.ts'
import { ATTRIBUTE_SLOTS } from './attributes.ts'
import { isOperationDataTemplate } from './operation-data.ts'
import { hasDirectionChange, hasSoundPlaceholders, type SignatureType } from './template.ts'

export const SIGNATURE_TYPES: readonly SignatureType[] = ['possession', 'possession_knowledge', 'possession_biometry']
export const MESSAGE_HINT = 'has a broken placeholder, or control or direction characters'

/** No control characters, no change of direction and no half of a surrogate pair. */
export const isText = (text: string): boolean => text.isWellFormed() && !/\p{Cc}/u.test(text) && !hasDirectionChange(text)
/** The same, but for line breaks, tabulators and sound placeholders. */
export const isMessage = (text: string): boolean => isText(text.replace(/[\n\r\t]/g, '')) && hasSoundPlaceholders(text)
export const isName = (text: string): boolean => isText(text) && isIdentifier(text)
export const PARAMETER_NAME_HINT = 'must be the name of an operation parameter'

/** A text of at most `maxLength` UTF-16 code units that a function judges. */
function text(format: string, isGood: (text: string) => boolean, description: string, maxLength?: number) {
  FormatRegistry.Set(`template ${format}`, isGood)
  return Type.String({ format: `template ${format}`, description, ...(maxLength !== undefined && { maxLength }) })
}

const isFilled = (value: string): boolean => value.trim() !== '' && isMessage(value)
const Identifier = text('name', isName, 'must be 1 to 255 characters, not blank, without control and direction characters')
const TemplateName = text(
  'template name',
  (name) => isName(name) && isForPaths(name),
  'must be 1 to 255 characters, not blank, without control and direction characters, other than . and ..',
)
const Title = text('title', isFilled, 'must be 1 to 255 characters, not blank, with sound placeholders', 255)
const Message = text('message', isFilled, 'must be 1 to 4096 characters, not blank, with sound placeholders', 4096)
const Count = Type.Integer({ minimum: 1, maximum: 2_147_483_647, description: 'must be an integer from 1 to 2147483647' })
const AnObject = { description: 'must be an object' }

const Attribute = Type.Object(
  {
    id: Identifier,
    type: text(
      'attribute type',
      (type) => Object.hasOwn(ATTRIBUTE_SLOTS, type),
      `must be one of ${Object.keys(ATTRIBUTE_SLOTS).join(', ')}`,
    ),
    text: text('label', isText, 'must be at most 255 characters without control and direction characters', 255),
    // Which there are follows from the type: parser.ts judges them.
    params: Type.Unsafe<Readonly<Record<string, string>>>(Type.Unknown({ default: {} })),
  },
  AnObject,
)

/** Title and message are demanded of every language: a phone would show an empty page in one that lacks them. */
const Texts = Type.Object(
  {
    title: Title,
    message: Message,
    attributes: Type.Optional(
      Type.Array(Attribute, { maxItems: 100, default: [], description: 'must be a list of at most 100 attributes' }),
    ),
    // What phones read of it is OperationUi: parser.ts judges it.
    ui: Type.Optional(Type.Unsafe<Readonly<Record<string, unknown>>>(Type.Unknown())),
    resultTexts: Type.Optional(
      Type.Object({ success: Type.Optional(Message), failure: Type.Optional(Message), reject: Type.Optional(Message) }, AnObject),
    ),
    summary: Type.Optional(Message),
  },
  AnObject,
)

export const TemplateSchema = Type.Object({
  templateName: TemplateName,
  operationType: Identifier,
  dataTemplate: text(
    'operation data',
    (value) => isText(value) && isOperationDataTemplate(value),
    'must be 1 to 4096 characters: A, a number from 0 to 99, then at most 5 fields after asterisks, with sound placeholders',
    4096,
  ),
  signatureType: Type.Array(Type.Union(SIGNATURE_TYPES.map((type) => Type.Literal(type))), {
    minItems: 1,
    uniqueItems: true,
    description: `must be a list of ${SIGNATURE_TYPES.join(', ')}, each at most once`,
  }),
  maxFailureCount: Count,
  expiration: Count,
  riskFlags: Type.Optional(
    Type.String({ pattern: '^(?!.*(.).*\\1)[XFC]*$', description: 'must be made of the letters X, F and C, each at most once' }),
  ),
  proximityCheckEnabled: Type.Optional(Type.Boolean({ description: 'must be a boolean' })),
  activationFlag: Type.Optional(
    text('flag', (value) => isName(value) && !/[\s,]/.test(value), 'must be 1 to 255 characters without white space and commas'),
  ),
  texts: Type.Record(Type.String(), Texts, {
    minProperties: 1,
    description: 'must be an object with the texts of at least one language',
  }),
})
export type TemplateJson = Static<typeof TemplateSchema>
