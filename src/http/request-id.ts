// The id that joins what is logged, answered and traced of a request.

/** A caller's own id when it is 1 to 128 characters that no log, header or shell reads as anything else, else undefined. */
export const parseRequestId = (text: unknown): string | undefined =>
  typeof text === 'string' && /^[\w.:~+/=@-]{1,128}$/.test(text) ? text : undefined
