// Decides whether a version of a mobile app is too old for its server (utility §1, optional version check).
import type { MobilePlatform } from '../../storage/database/schema.ts'
import type { VersionRuleRow, VersionTextRow } from '../../storage/pinning/version-rules.ts'

/** What a mobile app says of itself. */
interface MobileApp {
  /** MAJOR.MINOR.PATCH; what follows does not count. */
  readonly appVersion: string
  /** Starts with the major version: `17.4.1`, or the API level of Android. */
  readonly osVersion: string
  readonly platform: MobilePlatform
}

interface VersionVerdict {
  readonly update: 'NOT_REQUIRED' | 'SUGGESTED' | 'FORCED'
  /** In the first of the user's languages that has a text, else English. */
  readonly message?: string
}

/**
 * Judges a version by the rule for the app's major version of the operating system, else by the general rule; without a rule every version is
 * accepted. `languages` are the user's language tags, most wanted first; regions are ignored.
 */
export function verifyVersion(
  rules: readonly VersionRuleRow[],
  texts: readonly VersionTextRow[],
  app: MobileApp,
  languages: readonly string[],
): VersionVerdict {
  const ofPlatform = rules.filter(({ platform }) => platform === app.platform)
  const major = Number.parseInt(app.osVersion, 10)
  const rule =
    ofPlatform.find(({ majorOsVersion }) => majorOsVersion === major) ??
    ofPlatform.find(({ majorOsVersion }) => majorOsVersion === null)
  if (rule === undefined) return { update: 'NOT_REQUIRED' }
  const update = isOlder(app.appVersion, rule.requiredVersion)
    ? 'FORCED'
    : isOlder(app.appVersion, rule.suggestedVersion)
      ? 'SUGGESTED'
      : 'NOT_REQUIRED'
  const text = update === 'NOT_REQUIRED' ? undefined : chooseText(texts, rule.messageKey, languages)
  return { update, ...(text !== undefined && { message: text }) }
}

function isOlder(version: string, than: string | null): boolean {
  if (than === null) return false
  const [given, wanted] = [numbersOf(version), numbersOf(than)]
  const at = wanted.findIndex((number, i) => number !== given[i])
  return at !== -1 && (given[at] ?? 0) < (wanted[at] ?? 0)
}

const numbersOf = (version: string): readonly number[] => (/^\d+\.\d+\.\d+/.exec(version)?.[0] ?? '').split('.').map(Number)

function chooseText(texts: readonly VersionTextRow[], key: string | null, languages: readonly string[]): string | undefined {
  const ofKey = texts.filter(({ messageKey }) => messageKey === key)
  const language = [...languages.map((tag) => tag.split('-')[0]), FALLBACK_LANGUAGE].find((wanted) =>
    ofKey.some((text) => text.language === wanted),
  )
  return ofKey.find((text) => text.language === language)?.text
}

const FALLBACK_LANGUAGE = 'en'
