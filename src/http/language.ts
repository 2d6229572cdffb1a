// Parses the languages that a caller wants: Accept-Language (RFC 9110 §12.5.4), most wanted first.

/**
 * Language tags (BCP 47, without extensions) of an Accept-Language header, most wanted first. An underscore, as some systems write it, counts as a
 * hyphen. Refused ones (q=0), `*` and texts that are no tags are left out. Never throws.
 */
export function parseAcceptLanguage(header = ''): readonly string[] {
  const ranges = header.split(',', RANGES_MAX).flatMap((range) => {
    const [, tag, quality = '1'] = RANGE.exec(range) ?? []
    const canonical = tag === undefined ? undefined : toCanonicalTag(tag)
    return canonical === undefined || Number(quality) === 0 ? [] : [{ tag: canonical, quality: Number(quality) }]
  })
  return [...new Set(ranges.toSorted((a, b) => b.quality - a.quality).map(({ tag }) => tag))]
}

/**
 * The canonical form of a tag, without `-u-` and `-x-` extensions, which would let a caller choose digits and calendars. Undefined for a text
 * that is no tag.
 */
function toCanonicalTag(tag: string): string | undefined {
  try {
    return new Intl.Locale(tag.replaceAll('_', '-')).baseName
  } catch (error) {
    if (error instanceof RangeError) return undefined
    throw error
  }
}

const RANGES_MAX = 32
const RANGE = /^\s*([A-Za-z]{2,3}(?:[-_][A-Za-z0-9]{1,8}){0,8})\s*(?:;\s*[qQ]\s*=\s*(0(?:\.\d{0,3})?|1(?:\.0{0,3})?)\s*)?$/
