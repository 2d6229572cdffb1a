// Composes the view of an operation for the phone: texts, rows, and the screens of the approval (mobile-token §3, §5, §6).
import { type RenderedAttribute, renderAttribute } from '../template/attributes.ts'
import { type Json, type ListElementType, renderUi } from '../template/ui.ts'
import { fillText, type LocalizedTexts, type OperationParameters, type ResultTexts } from '../template/template.ts'

export interface OperationFormInput {
  /** The texts in one language; chooseTexts returns them together with the locale. */
  readonly texts: LocalizedTexts
  /** BCP 47. */
  readonly locale: string
  /** BCP 47, for numbers. By default the locale of the texts. */
  readonly numberLocale?: string | undefined
  readonly parameters: OperationParameters
  /** Letters of X, F and C in any order. */
  readonly riskFlags: string
  readonly hasProximityCheck: boolean
  /** The spelling that the phone's SDK reads. By default that of most SDKs. */
  readonly listElementType?: ListElementType
}

export interface OperationForm {
  readonly formData: {
    readonly title: string
    readonly message: string
    readonly attributes: readonly RenderedAttribute[]
    readonly resultTexts?: ResultTexts
  }
  readonly ui?: Json
  /** Names of placeholders without a parameter, for the log. Their texts are empty. */
  readonly missing: readonly string[]
  /** Members of `ui` that were left out because phones would refuse them, for the log. Only a template older than the checks has some. */
  readonly leftOut: readonly string[]
}

/** Composes the form of an operation. Its amounts are raw JSON, so serialise it with JSON.stringify. */
export function renderOperationForm(input: OperationFormInput): OperationForm {
  const { texts, locale, numberLocale = locale, parameters } = input
  const missing = new Set<string>()
  const fill = (text: string): string => {
    const filled = fillText(text, parameters)
    for (const name of filled.missing) missing.add(name)
    return filled.text
  }
  const attributes = texts.attributes.flatMap((attribute) => renderAttribute(attribute, parameters, numberLocale) ?? [])
  const formData = {
    title: fill(texts.title),
    message: fill(texts.message),
    attributes,
    ...(texts.resultTexts && { resultTexts: fillEverywhere(texts.resultTexts, fill) as ResultTexts }),
  }
  const { ui, leftOut } =
    texts.ui === undefined ? { ui: deriveUi(input), leftOut: [] } : fillUi(fillEverywhere(texts.ui, fill) as Json, input)
  return { formData, ...(Object.keys(ui).length > 0 && { ui }), missing: [...missing], leftOut }
}

/** Composes title and message of an operation, each as one line of a QR text (cloud §6.5). */
export function renderQrTexts(texts: LocalizedTexts, parameters: OperationParameters): { title: string; message: string } {
  const render = (text: string): string => escapeLine(fillText(text, parameters).text)
  return { title: render(texts.title), message: render(texts.message) }
}

const escapeLine = (text: string): string => text.replaceAll('\\', '\\\\').replaceAll('\n', '\\n').replace(BELOW_SPACE, '')

/** Fills every text inside a JSON value. The value is not text yet, so a parameter cannot add members to it. */
function fillEverywhere(value: unknown, fill: (text: string) => string): unknown {
  if (typeof value === 'string') return fill(value)
  if (Array.isArray(value)) return value.map((item) => fillEverywhere(item, fill))
  if (typeof value !== 'object' || value === null) return value
  return Object.fromEntries(Object.entries(value).map(([name, member]) => [name, fillEverywhere(member, fill)]))
}

/** Fills the template's `ui`, and makes it safe for published SDKs. Without a proximity check it leaves out screens that scan a QR code. */
function fillUi(filled: Json, { hasProximityCheck, listElementType = 'LIST_ITEM' }: OperationFormInput) {
  const { ui, leftOut } = renderUi(filled, listElementType)
  if (hasProximityCheck) return { ui, leftOut }
  const isScan = (screen: unknown): boolean => (screen as Json)['type'] === 'QR_SCAN'
  const { preApprovalScreen, preApprovalScreens = [], ...rest } = ui
  const screens = (preApprovalScreens as Json[]).filter((screen) => !isScan(screen))
  return {
    ui: {
      ...rest,
      ...(preApprovalScreen !== undefined && !isScan(preApprovalScreen) && { preApprovalScreen }),
      ...(screens.length > 0 && { preApprovalScreens: screens }),
    },
    leftOut,
  }
}

function deriveUi({ riskFlags, locale }: OperationFormInput): Json {
  const language = locale.split('-', 1)[0]?.toLowerCase() ?? ''
  const warning = FRAUD_WARNINGS[Object.hasOwn(FRAUD_WARNINGS, language) ? language : 'en']
  return {
    ...(riskFlags.includes('X') && { flipButtons: true }),
    ...(riskFlags.includes('C') && { blockApprovalOnCall: true }),
    ...(riskFlags.includes('F') && { preApprovalScreen: { type: 'WARNING', ...warning, items: [], approvalType: 'SLIDER' } }),
  }
}

const BELOW_SPACE = /[^ -\u{10FFFF}]/gu

const FRAUD_WARNINGS: Readonly<Record<string, { readonly heading: string; readonly message: string }>> = {
  en: {
    heading: 'Could this be fraud?',
    message: 'If somebody is asking you to approve this, for example on the phone, reject it and call your bank.',
  },
  cs: {
    heading: 'Nejde o podvod?',
    message: 'Pokud vás ke schválení někdo vyzývá, například po telefonu, operaci zamítněte a zavolejte do své banky.',
  },
  sk: {
    heading: 'Nejde o podvod?',
    message: 'Ak vás na schválenie niekto vyzýva, napríklad po telefóne, operáciu zamietnite a zavolajte do svojej banky.',
  },
  de: {
    heading: 'Könnte das Betrug sein?',
    message: 'Wenn jemand Sie auffordert, dies zu bestätigen, etwa am Telefon, lehnen Sie ab und rufen Sie Ihre Bank an.',
  },
}

/** The number of bytes in the largest QR code. */
export const QR_BYTES_MAX = 2_953
