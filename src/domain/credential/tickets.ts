// Tickets: the console, which knows its caller, calls the cloud API in the caller's name with a ticket in place of a password. All checks of
// the API apply.
import { toBase64Url } from '../../lib/base64.ts'
import type { Platform } from '../../lib/platform.ts'
import type { Caller } from './credential.ts'

export interface Tickets {
  /** A random text of 128 bits that stands for the caller in one call. */
  readonly issue: (caller: Caller) => string
  /** The caller of a ticket, which is then used up; undefined for anything else. */
  readonly redeem: (ticket: string) => Caller | undefined
  /** Removes the ticket of a call that ended before it was redeemed. */
  readonly drop: (ticket: string) => void
}

/** The tickets of one process. They are only in its memory, only for the time of a call, and never leave the process. */
export function createTickets(platform: Pick<Platform, 'randomBytes'>): Tickets {
  const issued = new Map<string, Caller>()
  return {
    issue: (caller) => {
      const ticket = toBase64Url(platform.randomBytes(16))
      issued.set(ticket, caller)
      return ticket
    },
    redeem: (ticket) => {
      const caller = issued.get(ticket)
      issued.delete(ticket)
      return caller
    },
    drop: (ticket) => void issued.delete(ticket),
  }
}

/** The header of a ticket, in place of `Authorization`. */
export const TICKET_HEADER = 'x-pawl-ticket'
