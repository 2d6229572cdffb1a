// The request that is being served: its id, for every log line that is written on its behalf, and its span where there are traces.
import { AsyncLocalStorage } from 'node:async_hooks'
import type { Channel } from 'node:diagnostics_channel'
import type { Span } from './span.ts'

export interface RequestScope {
  readonly id: string
  /** Of the request, or of the stage of it that runs; undefined without traces. */
  readonly span: Span | undefined
}

/** Runs `work`, and what follows from it, as part of the request; undefined: as part of none. */
export const runInScope = <T>(scope: RequestScope | undefined, work: () => T): T => current.run(scope as RequestScope, work)

/** What runs within an event of the channel is part of the request that `toScope` returns; undefined: of none. */
export const bindScope = <Event>(
  channel: Channel<Event, RequestScope>,
  toScope: (event: Event) => RequestScope | undefined,
): void => channel.bindStore(current, (event) => toScope(event) as RequestScope)

/** Undefined for what no request has caused. */
export const currentScope = (): RequestScope | undefined => current.getStore()

const current = new AsyncLocalStorage<RequestScope>()
