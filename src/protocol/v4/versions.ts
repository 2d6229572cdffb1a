// Declares protocol 4.0. No other file of v4 contains version text.

/** The version text of v4; it enters shared secrets, envelopes and token digests (v4 §2.4, §5.5, §9.9). */
export const VERSION = '4.0'
