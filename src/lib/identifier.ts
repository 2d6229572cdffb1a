// Checks names of users, applications and templates: 1 to 255 UTF-16 code units, not blank, no control characters (cloud §1.3).

/** For schemas: the pattern, and what it demands in words. */
export const IDENTIFIER = {
  pattern: '^(?=[^]*\\S)[^\\u0000-\\u001F\\u007F]{1,255}$',
  description: 'must be 1 to 255 characters, not blank, without control characters',
} as const

/** The same for text that no schema has checked. */
export const isIdentifier = (text: string): boolean => RULE.test(text)

const RULE = new RegExp(IDENTIFIER.pattern)
