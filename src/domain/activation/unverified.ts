// Activations that wait for the verification of their owner (mobile-token §4.5, §9).

/** Whether an activation with these flags may neither approve anything nor hand over to another one, which would have other flags. */
export const isUnverified = (flags: readonly string[]): boolean => UNVERIFIED_FLAGS.some((flag) => flags.includes(flag))

const UNVERIFIED_FLAGS = ['VERIFICATION_PENDING', 'VERIFICATION_IN_PROGRESS']
