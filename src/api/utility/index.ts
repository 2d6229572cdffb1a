// The mobile utility API: what a mobile app asks for when it starts. No credentials; the answers are signed.
import type { FastifyInstance } from 'fastify'
import type { Pinning } from '../../domain/pinning/pinning.ts'
import type { DomainParts } from '../../domain/secrets/secrets.ts'
import { renderErrorsWith, renderUnknownPathsWith } from '../../http/errors.ts'
import type { UtilityErrors } from './error-renderer.ts'
import { mountInit, mountInitPublicKey } from './init.ts'

/** `render` signs errors by `signers`. */
export const utilityApi =
  (parts: Pick<DomainParts, 'platform' | 'events'> & { readonly pinning: Pinning }, { render, signers }: UtilityErrors) =>
  async (app: FastifyInstance) => {
    renderErrorsWith(app, parts.events, render)
    renderUnknownPathsWith(app, render)
    mountInit(app, parts, signers)
    mountInitPublicKey(app, parts)
  }
