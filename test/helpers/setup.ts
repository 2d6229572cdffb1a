// Starts servers for the tests of `pawl apply` and `pawl export`, and reads the example of a set-up file.
import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { sql } from 'kysely'
import { expect } from 'vitest'
import type { Db } from '../../src/storage/database/database.ts'
import { type CliEnd, type CliInput, runCli } from './cli.ts'
import { startTestServer, type TestServer } from './app.ts'

export interface SetupServer extends TestServer {
  /** Runs a command line as the administrator. */
  readonly pawl: (line: readonly string[], input?: CliInput) => Promise<CliEnd>
  /** Runs `pawl apply` with this file on stdin. */
  readonly apply: (file: string, ...more: readonly string[]) => Promise<CliEnd>
  /** Runs `pawl export` and returns its output. */
  readonly exported: () => Promise<string>
}

/** Starts a server without an application. */
export async function startSetupServer(): Promise<SetupServer> {
  // Without background work, only commands change its database.
  const server = await startTestServer({ env: { PAWL_CREDENTIAL_FAILURES_PER_MINUTE: '100000' }, worksInBackground: false })
  const admin = `${server.admin.user}:${server.admin.password}`
  const pawl: SetupServer['pawl'] = (line, input) => runCli(line, { PAWL_URL: server.url, PAWL_ADMIN: admin }, input)
  return {
    ...server,
    pawl,
    apply: (file, ...more) => pawl(['apply', '-f', '-', ...more], { input: file }),
    exported: async () => {
      const { code, stdout } = await pawl(['export'])
      expect(code).toBe(0)
      return stdout
    },
  }
}

/** The example of docs/SETUP-FILE.md. */
export const EXAMPLE = /^```yaml\n([^]*?)^```$/m.exec(readFileSync('docs/SETUP-FILE.md', 'utf8'))?.[1] ?? ''

/** Reads every row of every table. */
export async function dumpRows(db: Db): Promise<ReadonlyMap<string, string>> {
  const { rows: tables } = await sql<{ name: string }>`
    select table_name as name from information_schema.tables
    where table_schema = current_schema() and table_type = 'BASE TABLE' order by 1`.execute(db)
  const dump = new Map<string, string>()
  for (const { name } of tables) {
    const { rows } = await sql<{ rows: string }>`
      select coalesce(string_agg(t::text, E'\n' order by t::text), '') as rows from ${sql.table(name)} t`.execute(db)
    dump.set(name, rows[0]?.rows ?? '')
  }
  return dump
}

interface Hooks {
  /** Called before the server gets the request. */
  readonly before?: (method: string, path: string) => Promise<unknown>
  /** Whether the server's answer to the request is dropped. */
  readonly isCut?: (method: string, path: string) => boolean
}

/** Starts a proxy between a command and the server. */
export async function startProxy({ url: target }: Pick<SetupServer, 'url'>, { before, isCut = () => false }: Hooks) {
  const proxy = createServer((incoming, outgoing) => {
    const chunks: Buffer[] = []
    const forward = async (): Promise<void> => {
      const { method = '', url = '' } = incoming
      await before?.(method, url)
      const headers = { authorization: incoming.headers.authorization ?? '', 'content-type': 'application/json' }
      const reply = await fetch(target + url, { method, headers, ...(method !== 'GET' && { body: Buffer.concat(chunks) }) })
      const text = await reply.text()
      if (isCut(method, url)) outgoing.destroy()
      else outgoing.writeHead(reply.status, { 'content-type': 'application/json' }).end(text)
    }
    incoming.on('data', (chunk: Buffer) => chunks.push(chunk))
    incoming.on('end', () => void forward())
  })
  proxy.listen(0, '127.0.0.1')
  await once(proxy, 'listening')
  const close = async (): Promise<void> => {
    proxy.closeAllConnections()
    proxy.close()
    await once(proxy, 'close')
  }
  return { url: `http://127.0.0.1:${(proxy.address() as AddressInfo).port}`, close }
}
