// Declares the parts of the package oidc-provider that tests use, because it has no types.
declare module 'oidc-provider' {
  import type { IncomingMessage, ServerResponse } from 'node:http'

  interface Saved {
    readonly save: () => Promise<string>
  }
  export class Provider {
    constructor(issuer: string, configuration: Readonly<Record<string, unknown>>)
    readonly callback: () => (request: IncomingMessage, response: ServerResponse) => void
    readonly Client: { readonly find: (id: string) => Promise<object | undefined> }
    readonly Grant: new (
      members: Readonly<Record<string, unknown>>,
    ) => Saved & {
      readonly addOIDCScope: (scope: string) => void
    }
    readonly AuthorizationCode: new (
      members: Readonly<Record<string, unknown>>,
    ) => Saved
  }
}
