// Finds a text by the language of a tag. Languages of texts have two letters; phones and back ends also write former codes and codes of three letters.

/**
 * The one of `languages` (two small letters) that a tag (BCP 47) means, whatever its region; undefined if there is none. Former codes count as
 * the present ones, because old versions of Java write them: `iw` is `he`, and `in` is `id`. `tl` is `fil`, which has no code of two letters.
 */
export function findLanguage(languages: readonly string[], tag: string): string | undefined {
  const [wanted = ''] = tag.toLowerCase().split('-', 1)
  if (languages.includes(wanted)) return wanted
  const present = toPresent(wanted)
  return languages.find((language) => toPresent(language) === present)
}

/** The present code of a language. Other texts stay as they are, because anybody may have sent them. */
function toPresent(language: string): string {
  if (!CODE.test(language)) return language
  const known = PRESENT.get(language)
  if (known !== undefined) return known
  const present = new Intl.Locale(language).language
  PRESENT.set(language, present)
  return present
}

const CODE = /^[a-z]{2,3}$/
/** What was looked up, because a look-up takes 5 µs. There are no more than 18,252 codes. */
const PRESENT = new Map<string, string>()
