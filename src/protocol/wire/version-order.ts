// The order of protocol versions, across generations. Every version text is one digit, a dot and one digit.

/** Whether `version` came before `other`. */
export const isOlderVersion = (version: string, other: string): boolean => version < other
