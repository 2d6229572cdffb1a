// Defines the schema of `ui`, the screens before and after an approval (mobile-token §6). It accepts only screens that published SDKs can read.
// Some SDKs lose the whole list of operations because of one other screen.
import { type TProperties, type TSchema, Type } from '@sinclair/typebox'
import { Value, type ValueError, ValueErrorType } from '@sinclair/typebox/value'

export type Json = Readonly<Record<string, unknown>>

/** The spelling of the type of a list element: `LISTITEM` for the SDK for iOS, `LIST_ITEM` for all others. */
export type ListElementType = 'LIST_ITEM' | 'LISTITEM'

/** A fault: the path of a value, for example `preApprovalScreen.items.0`, the value, and a hint how it must be. */
interface UiFault {
  readonly path: string
  readonly value: unknown
  readonly hint: string
}

/** Finds every fault of a template's `ui` by the schema. Null counts as absent. */
export const findUiFaults = (ui: Json): UiFault[] => describeErrors([...Value.Errors(OperationUi, completeUi(ui))])

/**
 * Makes the filled `ui` of an operation safe for published SDKs. It adds missing texts that they need, and leaves out members that do not fit the
 * schema. `leftOut` has the paths of these members.
 */
export function renderUi(filled: Json, listElementType: ListElementType): { ui: Json; leftOut: readonly string[] } {
  const leftOut: string[] = []
  const isSafe = (schema: TSchema, path: string, value: unknown): boolean => {
    const isInside = Value.Check(schema, value)
    if (!isInside) leftOut.push(path)
    return isInside
  }
  const { preApprovalScreens, ...rest } = completeUi(filled)
  const known: Readonly<Record<string, TSchema>> = OperationUi.properties
  const members = Object.entries(rest).filter(([name, value]) => {
    const schema = Object.hasOwn(known, name) ? known[name] : undefined
    return schema === undefined || isSafe(schema, name, value)
  })
  const screens = listOf(preApprovalScreens).filter((screen, index) =>
    isSafe(PreApprovalScreen, `preApprovalScreens.${index}`, screen),
  )
  const ui = Object.fromEntries([...members, ...(screens.length > 0 ? [['preApprovalScreens', screens]] : [])])
  return { ui: spellListElements(ui, listElementType), leftOut }
}

/** Returns a URL in a form that every SDK reads, or `about:blank`: iOS leaves out a row whose URL is invalid. */
export function safeUrl(text: string): string {
  if (!URL.canParse(text)) return NO_URL
  if (URI.test(text)) return text
  const { href } = new URL(text)
  return URI.test(href) ? href : NO_URL
}

/** Removes members that are null, and adds empty ones that SDKs need. */
function completeUi(ui: Json): Json {
  const { preApprovalScreen, preApprovalScreens, postApprovalScreen, ...rest } = withoutNulls(ui) as Json
  return {
    ...rest,
    ...(preApprovalScreen !== undefined && { preApprovalScreen: completeScreen(preApprovalScreen) }),
    ...(preApprovalScreens !== undefined && {
      preApprovalScreens: Array.isArray(preApprovalScreens) ? preApprovalScreens.map(completeScreen) : preApprovalScreens,
    }),
    ...(postApprovalScreen !== undefined && { postApprovalScreen: completeReview(postApprovalScreen) }),
  }
}

/** iOS refuses the whole operation when heading or message of a screen is not a text. */
const completeScreen = (screen: unknown): unknown =>
  isObject(screen) ? { ...screen, heading: screen['heading'] ?? '', message: screen['message'] ?? '' } : screen

function completeReview(screen: unknown): unknown {
  if (!isObject(screen) || screen['type'] !== 'REVIEW' || !isObject(screen['payload'])) return screen
  const { attributes } = screen['payload']
  if (!Array.isArray(attributes)) return screen
  return { ...screen, payload: { ...screen['payload'], attributes: attributes.map(completeAttribute) } }
}

/** `type` comes first, because the parser of one SDK needs it before an object. */
function completeAttribute(attribute: unknown): unknown {
  if (!isObject(attribute)) return attribute
  const { type, partyInfo, ...rest } = attribute
  if (type !== 'PARTY_INFO' || !isObject(partyInfo)) return { type, ...rest, ...(partyInfo !== undefined && { partyInfo }) }
  const { logoUrl, websiteUrl = NO_URL } = partyInfo
  const safe = (url: unknown) => (typeof url === 'string' ? safeUrl(url) : url)
  return {
    type,
    ...rest,
    partyInfo: { ...partyInfo, ...(logoUrl !== undefined && { logoUrl: safe(logoUrl) }), websiteUrl: safe(websiteUrl) },
  }
}

function spellListElements(ui: Json, listElementType: ListElementType): Json {
  const spell = (screen: Json): Json =>
    Array.isArray(screen['elements']) ? { ...screen, elements: screen['elements'].map(spellElement) } : screen
  const spellElement = (element: Json): Json => (isListElement(element['type']) ? { ...element, type: listElementType } : element)
  return Object.fromEntries(
    Object.entries(ui).map(([name, value]) => {
      if (name === 'preApprovalScreen') return [name, spell(value as Json)]
      return [name, name === 'preApprovalScreens' ? (value as Json[]).map(spell) : value]
    }),
  )
}

const isListElement = (type: unknown): type is ListElementType => type === 'LIST_ITEM' || type === 'LISTITEM'

function withoutNulls(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(withoutNulls)
  if (!isObject(value)) return value
  const members = Object.entries(value).filter(([, member]) => member !== null && member !== undefined)
  return Object.fromEntries(members.map(([name, member]) => [name, withoutNulls(member)]))
}

/** Keeps one fault for each path. For a union it takes the faults of the variant that the `type` of the value names. */
function describeErrors(errors: readonly ValueError[]): UiFault[] {
  const faults = new Map<string, UiFault>()
  for (const fault of errors.flatMap(describeError)) if (!faults.has(fault.path)) faults.set(fault.path, fault)
  return [...faults.values()]
}

function describeError({ type, path, value, schema, message, errors }: ValueError): UiFault[] {
  const own = path.slice(1).replaceAll('/', '.')
  if (type !== ValueErrorType.Union || !isObject(value))
    return [{ path: own, value, hint: typeof schema.description === 'string' ? schema.description : message }]
  const kinds = errors.map((variant) => [...variant])
  const kind = kinds.find((found) => found.every((error) => error.path !== `${path}/type`))
  if (kind !== undefined) return describeErrors(kind)
  return [{ path: `${own}.type`, value: value['type'], hint: schema.description ?? message }]
}

const isObject = (value: unknown): value is Json => typeof value === 'object' && value !== null && !Array.isArray(value)
const listOf = (value: unknown): readonly unknown[] => (Array.isArray(value) ? value : [])

const NO_URL = 'about:blank'
/** A URI (RFC 3986 §2, §3.1). */
const URI = /^[A-Za-z][A-Za-z0-9+.-]*:(?:[A-Za-z0-9\-._~:/?#[\]@!$&'()*+,;=]|%[0-9A-Fa-f]{2})+$/

const INTEGER_MAX = 2_147_483_647
const Text = Type.String({ description: 'must be a text' })
const Flag = Type.Boolean({ description: 'must be a boolean' })
const Seconds = Type.Integer({ minimum: 0, maximum: INTEGER_MAX, description: 'must be a whole number of seconds' })
export const AnObject = { description: 'must be an object' }
const word = (...words: string[]) =>
  Type.String({ pattern: `^(?:${words.join('|')})$`, description: `must be ${words.join(' or ')}` })

const Element = Type.Object(
  {
    type: word('LIST_ITEM', 'LISTITEM', 'ALERT', 'BUTTON'),
    id: Type.Optional(Text),
    style: Type.Optional(word('INFO', 'WARNING', 'DANGER')),
    text: Type.Optional(Text),
    icon: Type.Optional(Text),
    href: Type.Optional(Text),
    action: Type.Optional(word('LINK', 'MAIL', 'PHONE')),
    actionSettings: Type.Optional(Text),
  },
  AnObject,
)

const Controls = Type.Object(
  {
    flip: Type.Optional(Flag),
    axis: Type.Optional(word('HORIZONTAL', 'VERTICAL')),
    decline: Type.Optional(Type.Object({ type: word('BACK', 'REJECT'), text: Type.Optional(Text) }, AnObject)),
    approve: Type.Optional(
      Type.Object({ type: word('SLIDER', 'BUTTON'), text: Type.Optional(Text), counter: Type.Optional(Seconds) }, AnObject),
    ),
  },
  AnObject,
)

const PreApprovalScreen = Type.Object(
  {
    type: word('WARNING', 'INFO', 'QR_SCAN'),
    heading: Text,
    message: Text,
    items: Type.Optional(Type.Array(Text, { description: 'must be a list' })),
    approvalType: Type.Optional(word('SLIDER')),
    id: Type.Optional(Text),
    backButton: Type.Optional(Flag),
    image: Type.Optional(Text),
    elements: Type.Optional(Type.Array(Element, { description: 'must be a list' })),
    controls: Type.Optional(Controls),
  },
  AnObject,
)

/** In other members of an attribute, a list keeps the parser of one SDK busy for ever, and an object ends the attribute too early. */
const Flat = Type.Union([Type.String(), Type.Number(), Type.Boolean()], { description: 'must be neither a list nor an object' })
const attribute = (type: string, members: TProperties): TSchema =>
  Type.Object({ type: Type.Literal(type), id: Text, label: Text, ...members }, { additionalProperties: Flat })
const moneyOf = (names: Readonly<Record<'amount' | 'currency' | 'formatted' | 'currencyFormatted' | 'value', string>>) => ({
  [names.amount]: Type.Optional(Type.Number({ description: 'must be a number' })),
  [names.currency]: Text,
  [names.formatted]: Text,
  [names.currencyFormatted]: Text,
  [names.value]: Type.Optional(Text),
})
const sideOf = (side: 'source' | 'target') =>
  moneyOf({
    amount: `${side}Amount`,
    currency: `${side}Currency`,
    formatted: `${side}AmountFormatted`,
    currencyFormatted: `${side}CurrencyFormatted`,
    value: `${side}ValueFormatted`,
  })

/** A row of the form on the phone (mobile-token §5). */
const Attribute = Type.Union(
  [
    attribute(
      'AMOUNT',
      moneyOf({
        amount: 'amount',
        currency: 'currency',
        formatted: 'amountFormatted',
        currencyFormatted: 'currencyFormatted',
        value: 'valueFormatted',
      }),
    ),
    attribute('AMOUNT_CONVERSION', { dynamic: Flag, ...sideOf('source'), ...sideOf('target') }),
    attribute('KEY_VALUE', { value: Text }),
    attribute('NOTE', { note: Text }),
    attribute('HEADING', {}),
    attribute('ALERT', { alertType: word('SUCCESS', 'INFO', 'WARNING', 'ERROR'), title: Type.Optional(Text), message: Text }),
    attribute('IMAGE', { thumbnailUrl: Text, originalUrl: Type.Optional(Text) }),
    attribute('PARTY_INFO', {
      partyInfo: Type.Object(
        { logoUrl: Text, name: Text, description: Text, websiteUrl: Text },
        { additionalProperties: Text, ...AnObject },
      ),
    }),
  ],
  { description: 'must be AMOUNT, AMOUNT_CONVERSION, KEY_VALUE, NOTE, HEADING, ALERT, IMAGE or PARTY_INFO' },
)

const postApprovalScreen = (type: string, payload: TProperties): TSchema =>
  Type.Object({ type: Type.Literal(type), heading: Text, message: Text, payload: Type.Object(payload, AnObject) })

/** The `ui` for phones. Members that are not listed are passed on unchanged. */
export const OperationUi = Type.Object({
  flipButtons: Type.Optional(Flag),
  blockApprovalOnCall: Type.Optional(Flag),
  preApprovalScreen: Type.Optional(PreApprovalScreen),
  preApprovalScreens: Type.Optional(Type.Array(PreApprovalScreen, { description: 'must be a list' })),
  postApprovalScreen: Type.Optional(
    Type.Union(
      [
        postApprovalScreen('REVIEW', { attributes: Type.Array(Attribute, { description: 'must be a list' }) }),
        postApprovalScreen('MERCHANT_REDIRECT', { redirectText: Text, redirectUrl: Text, countdown: Seconds }),
        postApprovalScreen('GENERIC', {}),
      ],
      { description: 'must be REVIEW, MERCHANT_REDIRECT or GENERIC' },
    ),
  ),
  templates: Type.Optional(Type.Object({}, AnObject)),
})
