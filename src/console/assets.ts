// Serves the files that pages load: a stylesheet, htmx, a script, an icon. Addresses contain a hash of the content, so that browsers may keep the
// files for a year.
import { readFile } from 'node:fs/promises'
import type { FastifyInstance } from 'fastify'
import { Type } from '@sinclair/typebox'
import { sha256 } from '../crypto/hash.ts'
import { toBase64Url } from '../lib/base64.ts'
import { PawlError } from '../lib/errors.ts'

/** Addresses of the files, below /console/. */
export interface Assets {
  readonly style: string
  readonly htmx: string
  readonly browser: string
  readonly icon: string
}

/** Reads the files from packages and this folder, unchanged, and serves them below `/assets` of the plugin. */
export async function serveAssets(app: FastifyInstance): Promise<Assets> {
  const files = new Map<string, { readonly type: string; readonly bytes: Buffer }>()
  const add = async (name: string, ending: string, type: string, url: URL): Promise<string> => {
    const bytes = await readFile(url)
    const file = `${name}.${toBase64Url(sha256(bytes)).slice(0, 16)}.${ending}`
    files.set(file, { type, bytes })
    return `assets/${file}`
  }
  const assets = {
    style: await add('style', 'css', 'text/css; charset=utf-8', new URL('style.css', import.meta.url)),
    htmx: await add('htmx', 'js', 'text/javascript; charset=utf-8', new URL('htmx.min.js', import.meta.resolve('htmx.org'))),
    browser: await add('browser', 'js', 'text/javascript; charset=utf-8', new URL('browser.js', import.meta.url)),
    icon: await add('icon', 'svg', 'image/svg+xml', new URL('icon.svg', import.meta.url)),
  }
  app.get<{ Params: { file: string } }>(
    '/assets/:file',
    { schema: { params: Type.Object({ file: Type.String() }) } },
    async ({ params }, reply) => {
      const file = files.get(params.file)
      if (file === undefined) throw new PawlError('PATH_UNKNOWN')
      return reply.type(file.type).header('cache-control', 'public, max-age=31536000, immutable').send(file.bytes)
    },
  )
  return assets
}
