// Checks names of users, applications and templates: 1 to 255 UTF-16 code units, not blank, no control characters (cloud §1.3).

interface Rule {
  /** For schemas. */
  readonly pattern: string
  /** What it demands in words. */
  readonly description: string
}

export const IDENTIFIER = {
  pattern: '^(?=[^]*\\S)[^\\u0000-\\u001F\\u007F]{1,255}$',
  description: 'must be 1 to 255 characters, not blank, without control characters',
} as const satisfies Rule

/** User names of credentials contain no colon: HTTP Basic ends them there. */
export const USERNAME = {
  pattern: '^[^\\u0000-\\u001F\\u007F:]{1,255}$',
  description: 'must be 1 to 255 characters without colon and control characters',
} as const satisfies Rule

/**
 * The rule for what gets a name that stands in paths. For `.` and `..` every URL means the path above, also when they are encoded: no call could
 * name such a thing.
 */
export const forPaths = ({ pattern, description }: Rule): Rule => ({
  pattern: pattern.replace('^', '^(?!\\.{1,2}$)'),
  description: `${description}, other than . and ..`,
})

/** Whether a path can have the name. */
export const isForPaths = (name: string): boolean => name !== '.' && name !== '..'

/** Whether a text that no schema has checked is an IDENTIFIER. */
export const isIdentifier = (text: string): boolean => RULE.test(text)

const RULE = new RegExp(IDENTIFIER.pattern)
