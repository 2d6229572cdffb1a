// Checks names of users, applications and templates: 1 to 255 UTF-16 code units, not blank, no control characters (cloud §1.3).

interface Rule {
  /** The form for JSON schemas. */
  readonly pattern: string
  readonly description: string
}

export const IDENTIFIER = {
  pattern: '^(?=[^]*\\S)[^\\u0000-\\u001F\\u007F]{1,255}$',
  description: 'must be 1 to 255 characters, not blank, without control characters',
} as const satisfies Rule

/** The rule for user names of credentials. A user name contains no colon, because HTTP Basic ends it there. */
export const USERNAME = {
  pattern: '^[^\\u0000-\\u001F\\u007F:]{1,255}$',
  description: 'must be 1 to 255 characters without colon and control characters',
} as const satisfies Rule

/**
 * The rule for names that occur in paths of URLs. `.` and `..` are refused: a URL resolves them, also when they are encoded, so no call could name
 * such a thing.
 */
export const forPaths = ({ pattern, description }: Rule): Rule => ({
  pattern: pattern.replace('^', '^(?!\\.{1,2}$)'),
  description: `${description}, other than . and ..`,
})

/** Whether a name can occur in the path of a URL. */
export const isForPaths = (name: string): boolean => name !== '.' && name !== '..'

/** Checks a text against IDENTIFIER, for texts that no schema has checked. */
export const isIdentifier = (text: string): boolean => RULE.test(text)

const RULE = new RegExp(IDENTIFIER.pattern)
