// Identifiers of activations, tokens and temporary keys (v3 §2.4, v4 §6.2).

/** UUID of version 1 to 5 in any case, unchanged, because identifiers are compared as text; undefined for anything else. */
export const parseUuid = (value: unknown): string | undefined =>
  typeof value === 'string' && UUID.test(value) ? value : undefined

const UUID = /^[0-9a-f]{8}-[0-9a-f]{4}-[1-5][0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/i
