// The mobile utility API: what a mobile app asks for when it starts. No credentials; the answers are signed.
import type { FastifyInstance } from 'fastify'
import type { Pinning } from '../../domain/pinning/pinning.ts'
import type { DomainParts } from '../../domain/secrets/secrets.ts'
import { renderErrorsWith, renderUnknownPathsWith } from '../../http/errors.ts'
import { createUtilityErrorRenderer, type Signers } from './error-renderer.ts'
import { mountInit, mountInitPublicKey } from './init.ts'

export const utilityApi =
  (parts: Pick<DomainParts, 'platform' | 'events'> & { readonly pinning: Pinning }) => async (app: FastifyInstance) => {
    const signers: Signers = new WeakMap()
    const render = createUtilityErrorRenderer(parts, signers)
    renderErrorsWith(app, parts.events, render)
    renderUnknownPathsWith(app, render)
    mountInit(app, parts, signers)
    mountInitPublicKey(app, parts)
  }
