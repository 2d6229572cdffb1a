// Declares pawl audit: lists the events of a user's phones and the changes by administrators, and verifies both logs.
import { bankCommand } from '../bank-command.ts'
import { command, flag, many, type Noun, text } from '../command.ts'
import { usageFault } from '../fault.ts'
import { answerPages, PAGE_OPTIONS } from '../pages.ts'
import { parseMilliseconds } from '../time.ts'

const PERIOD = {
  from: text('TIME', 'not before: milliseconds since 1970, or a date like 2027-01-31T12:00:00Z'),
  to: text('TIME', 'not after'),
  ...PAGE_OPTIONS,
} as const

const timesOf = ({ from, to }: { from: string | undefined; to: string | undefined }) => ({
  timestampFrom: from === undefined ? undefined : parseMilliseconds(from),
  timestampTo: to === undefined ? undefined : parseMilliseconds(to),
})

const LISTING = { rows: 'items', cursor: ['before', 'next'], pageMax: 1_000 } as const

const log = bankCommand({
  name: 'log',
  summary: 'Shows the events of the phones of a user, newest first',
  words: { '<user>': 'the user' },
  more: 'It lists the last 30 days, or the time from --from on. Rows of one millisecond stay together on a page.',
  options: PERIOD,
  examples: ['audit log alice', 'audit log alice --from 2027-01-01 --limit 20', 'audit log alice --all >alice.jsonl'],
  run: async (given) => {
    const query = { userId: given.words[0], ...timesOf(given.values) }
    return answerPages({ ...LISTING, path: '/audit/log', query }, given)
  },
})

const changes = bankCommand({
  name: 'changes',
  summary: 'Lists the changes by administrators, newest first',
  options: {
    ...PERIOD,
    user: text('NAME', 'of this administrator'),
    action: text('ACTION', 'of this kind, as it stands in the list'),
  },
  examples: ['audit changes', 'audit changes --user admin --limit 20', 'audit changes --all >changes.jsonl'],
  run: async (given) => {
    const { user: username, action } = given.values
    const query = { username, action, ...timesOf(given.values) }
    return answerPages({ ...LISTING, path: '/admin/audit', query }, given)
  },
})

const verify = bankCommand({
  name: 'verify',
  summary: 'Verifies the audit log of the configured database; exit code 1 when it was altered',
  more: 'Keep the heads that it prints elsewhere, in the form that --expect-head takes. Without them nobody can tell later whether the log was cut off, or written anew with the key. The embedded database can be opened only while its server is stopped; --online asks a running server.',
  options: {
    expectHead: many('CHAIN=POSITION:SEAL', 'a head that was noted; may be given several times'),
    online: flag('asks a running server, which verifies its own log and takes no heads'),
  },
  examples: ['audit verify', 'audit verify --expect-head application:my-app=41:5f0c…', 'audit verify --online'],
  run: async ({ values, terminal, openBank }) => {
    if (values.online) {
      if (values.expectHead.length > 0) throw usageFault('--online and --expect-head exclude each other')
      const json = await openBank().call<{ isIntact: boolean }>('GET', '/admin/audit/verification')
      return { json, exitCode: json.isIntact ? 0 : 1 }
    }
    const { parseHead, verifyLocal } = await import('../local/audit-verification.ts')
    const heads = values.expectHead.map((head) => parseHead(head, '--expect-head'))
    return verifyLocal(terminal, heads)
  },
})

const exportLog = command({
  name: 'export',
  summary:
    'Prints the sealed rows of both audit logs of the configured database as lines of JSON, each with its position and its seal',
  more: 'The rows are verified: after an altered row nothing more of its chain is printed, and the exit code is 1. The last line says where each chain ended, in the form that --after takes. The embedded database can be opened only while its server is stopped.',
  options: { after: many('CHAIN=POSITION:SEAL', 'where an earlier export of this chain ended; may be given several times') },
  examples: ['audit export', 'audit export --after application:my-app=41:5f0c…'],
  run: async ({ values, terminal }) => {
    const { exportLocal, parseHead } = await import('../local/audit-verification.ts')
    return exportLocal(
      terminal,
      values.after.map((head) => parseHead(head, '--after')),
    )
  },
})

export const audit: Noun = {
  name: 'audit',
  summary: 'What happened to phones, what administrators changed, and whether the log is as it was written',
  commands: [log, changes, verify, exportLog],
}
