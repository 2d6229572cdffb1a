// What a back end takes out of a phone's header is put back into one, so that one parser reads it, and what is told of an activation in a verdict.
import type { OwnAnswer } from '../door/answer.ts'

/** A header of these pairs; undefined when a value is missing, or could not have stood in one. */
export function composeHeader(pairs: Readonly<Record<string, string | undefined>>): string | undefined {
  const values = Object.entries(pairs)
  if (values.some(([, value]) => value === undefined || !VALUE.test(value))) return undefined
  return `PowerAuth ${values.map(([name, value]) => `${name}="${value}"`).join(', ')}`
}

/** The rest of a verdict. Where nothing is to be told, the activation is one that was removed. */
export function told(
  { state, blockReason, userId, flags, applicationRoles, reason }: OwnAnswer & { readonly reason?: string | undefined },
  applicationId: string,
) {
  const status = state ?? (reason === 'UNKNOWN' ? ('REMOVED' as const) : undefined)
  return {
    ...(status !== undefined && { activationStatus: status }),
    ...(blockReason !== undefined && { blockedReason: blockReason }),
    ...(userId !== undefined && { userId, applicationId }),
    applicationRoles: applicationRoles ?? [],
    activationFlags: flags ?? [],
  }
}

/** Printable, and no end of a value. */
const VALUE = /^[\u0020-\u0021\u0023-\u007E]*$/
