// docs/start/production.md as its reader follows it: every command in its order, by root, on a machine within a scratch folder. pawl, PostgreSQL,
// HAProxy and Prometheus are the real programs, under the accounts that they have there.
import { execFileSync, spawnSync } from 'node:child_process'
import { existsSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { connect } from 'node:tls'
import { afterAll, describe, expect, test, vi } from 'vitest'
import { findMissing, READ_OFF, readBlocks } from '../helpers/document.ts'
import { hasHaproxy } from '../helpers/haproxy.ts'
import { type Machine, makeFolder, openMachine, PROMETHEUS } from '../helpers/machine.ts'
import { PATIENCE_MS } from '../helpers/patience.ts'
import { findQuietPort } from '../helpers/ports.ts'

vi.setConfig({ testTimeout: 300_000, hookTimeout: 240_000 })

const PAGE = 'docs/start/production.md'
const PROGRAMS = [PROMETHEUS, '/usr/bin/promtool', '/usr/bin/systemd-analyze', '/usr/lib/postgresql', '/usr/sbin/useradd']
const canRun = process.getuid?.() === 0 && hasHaproxy && PROGRAMS.every((path) => existsSync(path))

/** The account that the page makes; a run beside this one has another. */
const ACCOUNT = `pawl-t${process.pid}`
const folder = canRun ? makeFolder() : ''
const machines: Machine[] = []
afterAll(async () => {
  for (const { close } of machines) await close()
  if (spawnSync('id', [ACCOUNT]).status === 0) execFileSync('userdel', [ACCOUNT])
})

/** What stands in the page, what is typed instead, and why. Everything else is typed as it is printed; so are the files of deploy. */
const substitutions = (
  port: Readonly<Record<string, string>>,
): readonly (readonly [RegExp, string | ((found: string) => string), string])[] => [
  [/(?<![\w.])\/(?=(?:etc|opt|usr\/local|var\/backups)\/)/g, `${folder}/`, 'the folders of this machine are its own'],
  [/(?<=\/nonexistent |-g |\bid |User=|\()pawl\b/g, ACCOUNT, 'and so are its accounts'],
  [/^(?:apt-get install|npm ci) .*$/gm, 'true', 'the programs and packages are here'],
  [/\b(?:81[08](?:[12]\b|(?=%i))|5432\b|9090\b)/g, (found) => port[found] ?? found, 'others may listen there'],
  [/0\.0\.0\.0:443/g, `127.0.0.1:${port['phones']}`, 'nothing of a test listens where others reach it'],
  [
    /https:\/\/10\.0\.0\.1|10\.0\.0\.1:443/g,
    (found) => found.replace('10.0.0.1', '127.0.0.1').replace(/(:443)?$/, `:${port['bank']}`),
    'nor there',
  ],
  [/10\.0\.0\.1/g, '127.0.0.1', 'the certificate for it'],
  [/https:\/\/phones\.bank\.example/g, `https://localhost:${port['phones']}`, 'nobody resolves the name of the example'],
  [/phones\.bank\.example:443/g, `localhost:${port['phones']}`, 'nobody resolves it'],
  [/phones\.bank\.example/g, 'localhost', 'the certificate for it'],
  [/journalctl -u 'pawl@\*' -o cat/g, `cat ${folder}/journal`, 'the journal of the stand-in for systemd'],
  [/_interval: 15s/g, '_interval: 1s', 'a minute of waiting'],
  [/\bfor: 1m$/gm, 'for: 1s', 'a minute of waiting'],
  [/(?<=--retry )30\b/g, String(PATIENCE_MS / 1000 - 10), 'others may keep the machine busy'],
]

/** Ports in the page by what listens there; those of a unit end with its number. */
async function findPorts(): Promise<Readonly<Record<string, string>>> {
  const free = new Set<number>()
  for (let count = 0; count < 32; count += 1) free.add(await findQuietPort())
  const [phones = 0, bank = 0] = [...free].filter((port) => port % 10 === 1 && free.has(port + 1))
  const others = [...free].filter((port) => ![phones, phones + 1, bank, bank + 1].includes(port)).map(String)
  const pair = (shown: number, own: number) => [
    [String(shown), String((own - 1) / 10)],
    [`${shown}1`, String(own)],
    [`${shown}2`, String(own + 1)],
  ]
  const names = ['5432', '9090', 'phones', 'bank'].map((name, index) => [name, others[index] ?? ''])
  return Object.fromEntries([...pair(810, phones), ...pair(818, bank), ...names])
}

/** The lines of a block as they are typed: a document behind `<<` belongs to its command. */
function splitCommands(lines: readonly string[]): string[] {
  const commands: string[] = []
  let end: string | undefined
  for (const line of lines) {
    if (end === undefined) commands.push(line)
    else commands.push(`${commands.pop()}\n${line}`)
    if (line === end) end = undefined
    else end ??= /<<'?(\w+)'?$/.exec(line)?.[1]
  }
  return commands
}

/** When the certificate ends that is shown at a port. */
const shownEnd = (port: string | undefined): Promise<string> =>
  new Promise((resolve, reject) => {
    const socket = connect({ host: '127.0.0.1', port: Number(port), rejectUnauthorized: false }, () => {
      resolve(socket.getPeerCertificate().valid_to)
      socket.destroy()
    })
    socket.once('error', reject)
  })

describe.skipIf(!canRun)(`${PAGE} (needs root, HAProxy, PostgreSQL and ${PROGRAMS.join(', ')})`, () => {
  const known = new Map<string, string>()
  let port: Readonly<Record<string, string>> = {}
  const here = (text: string): string =>
    substitutions(port).reduce((said, [pattern, by]) => said.replaceAll(pattern, by as string), text)
  const machine = (): Machine => machines[0] ?? expect.fail('there is no machine')

  /** Types a command. What systemctl would do, the stand-in for systemd does. */
  async function type(line: string): Promise<string> {
    const command = here(line).replaceAll(/THE-[A-Z-]+[A-Z]/g, (name) => known.get(name) ?? name)
    expect(command, 'a placeholder is left').not.toMatch(/THE-[A-Z]/)
    const [program, ...words] = command.split(' ')
    if (program === 'systemctl') {
      const before = words[0] === 'reload' ? await shownEnd(port['phones']) : ''
      await machine().systemctl(...words)
      // systemd waits until HAProxy has reloaded.
      if (words[0] === 'reload') await expect.poll(() => shownEnd(port['phones'])).not.toBe(before)
      return ''
    }
    const printed = await machine()
      .type(command, known.get('THE-PRINTED-PASSWORD'))
      .catch((cause: Error) => {
        throw new Error(`${cause.message}\nthe journal:\n${machine().journal()}`, { cause })
      })
    for (const [name, pattern] of Object.entries(READ_OFF)) {
      const [, value] = pattern.exec(printed) ?? []
      if (value !== undefined) known.set(name, value)
    }
    return printed
  }

  /** Types a block. Instead of sleeping, the command behind is typed again until the page's output is there. */
  async function follow({ commands, shown }: ReturnType<typeof readBlocks>[number]): Promise<void> {
    const expected = shown.map(here)
    let printed = ''
    let isWaiting = false
    for (const command of splitCommands(commands)) {
      if (command.startsWith('sleep ')) isWaiting = true
      else if (isWaiting) {
        let latest = ''
        await expect.poll(async () => findMissing(expected, printed + (latest = await type(command)))).toEqual([])
        printed += latest
        isWaiting = false
      } else printed += await type(command)
    }
    expect(findMissing(expected, printed), printed).toEqual([])
  }

  test('every command works in its order and prints what the page shows', async () => {
    port = await findPorts()
    machines.push(
      await openMachine({
        folder,
        here,
        account: ACCOUNT,
        postgresqlPort: port['5432'] ?? '',
        prometheusPort: port['9090'] ?? '',
      }),
    )
    const blocks = readBlocks(PAGE)
    expect(blocks.flatMap(({ commands }) => commands).length).toBeGreaterThan(60)
    for (const block of blocks) await follow(block)
    // The process that was stopped is back, and the alert is over.
    await expect.poll(() => type('promtool query instant http://127.0.0.1:9090 \'ALERTS{alertname="PawlDown"}\'')).toBe('\n')
  })

  test('nobody but root reads the master key, and pawl reads no more than it needs', () => {
    const as = (path: string) =>
      spawnSync('setpriv', [`--reuid=${ACCOUNT}`, `--regid=${ACCOUNT}`, '--clear-groups', 'cat', join(folder, path)])
    expect(as('etc/pawl/pawl.env').status).toBe(0)
    expect(as('etc/pawl/database_url').status).toBe(0)
    expect(as('etc/pawl/master_key').status).toBe(1)
    const modes = ['pawl/master_key', 'pawl/database_url', 'haproxy/phones.pem', 'haproxy/phones.key'].map(
      (path) => statSync(join(folder, 'etc', path)).mode & 0o777,
    )
    expect(modes).toEqual([0o600, 0o640, 0o600, 0o600])
    expect(as('var/backups/pawl').status).toBe(1)
  })

  test.each([
    ['without TLS', 's/sslmode=[a-z-]*/sslmode=disable/', 'no encryption|rejects'],
    ['another database', 's/pawl?/postgres?/', 'rejects'],
    ['a wrong password', 's/pawl:[0-9a-f]*/pawl:wrong/', 'authentication failed'],
  ])('the role of pawl is refused: %s', async (_, change, reason) => {
    const printed = await machine().type(`psql "$(sed '${change}' ${folder}/etc/pawl/database_url)" -c 'select 1' || true`)
    expect(printed).toMatch(new RegExp(reason))
  })
})
