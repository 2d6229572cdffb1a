// The id of the request that is being served, for every log line that is written on its behalf.
import { AsyncLocalStorage } from 'node:async_hooks'

/** Runs `work`, and what follows from it, as part of the request. */
export const runInRequest = (id: string, work: () => void): void => current.run(id, work)

/** Undefined for what no request has caused. */
export const currentRequestId = (): string | undefined => current.getStore()

/** A caller's own id when it is 1 to 128 characters that no log, header or shell reads as anything else, else undefined. */
export const parseRequestId = (text: unknown): string | undefined =>
  typeof text === 'string' && /^[\w.:~+/=@-]{1,128}$/.test(text) ? text : undefined

const current = new AsyncLocalStorage<string>()
