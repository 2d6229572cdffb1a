// Declares pawl webhook: manages webhooks of the bank, lists their deliveries, and replays dead ones.
import { APPLICATION_OPTION, bankCommand } from '../bank-command.ts'
import { flag, many, type Noun, text } from '../command.ts'
import { usageFault } from '../fault.ts'
import { answerList } from '../output.ts'
import { answerPages, PAGE_OPTIONS } from '../pages.ts'
import { compact, toPath } from '../query.ts'
import { readSecret } from '../secret-argument.ts'
import { parseCount } from '../time.ts'

const LOCAL = { local: flag('on the database of the settings; an embedded one only while its server is stopped') } as const

const list = bankCommand({
  name: 'list',
  summary: 'Lists webhooks, with what waits, was delivered, and was given up',
  options: LOCAL,
  examples: ['webhook list', 'webhook list --local'],
  run: async ({ values, terminal, openBank }) => {
    const columns = ['id', 'application', 'kind', 'name', 'url', 'isEnabled', 'disabledReason', 'waiting', 'delivered', 'dead']
    const json = values.local
      ? await (await import('../local/webhooks.ts')).listLocal(terminal)
      : await openBank().call('GET', '/admin/webhooks')
    return answerList(json, 'webhooks', columns)
  },
})

const TARGET = {
  attribute: many('NAME', 'what a message tells; may be given several times, and by default none beside type, id and event'),
  disabled: flag('sends nothing for now'),
  user: text('USER:PASSWORD', 'what is shown to the receiver by HTTP Basic'),
  userFile: text('FILE', 'a file that holds it: then it is in no list of processes'),
} as const

function readBasic(given: string | undefined, file: string | undefined): { username: string; password: string } | undefined {
  const user = readSecret('--user-file', given, file)
  if (user === undefined) return undefined
  const at = user.indexOf(':')
  if (at < 1) throw usageFault('--user is not of the form USER:PASSWORD')
  return { username: user.slice(0, at), password: user.slice(at + 1) }
}

const create = bankCommand({
  name: 'create',
  summary: 'Creates a webhook; its secret is shown this once',
  words: { '<kind>': 'OPERATION or ACTIVATION', '<url>': 'where messages go' },
  options: { ...APPLICATION_OPTION, name: text('TEXT', 'its name; by default its kind'), ...TARGET },
  examples: [
    'webhook create OPERATION https://bank.example/pawl',
    'webhook create ACTIVATION https://bank.example/pawl --attribute userId',
  ],
  run: async ({ words: [kind = '', url], values: { name, attribute, disabled, user, userFile }, openBank, application }) => {
    const basic = readBasic(user, userFile)
    const bank = openBank()
    const body = compact({
      application: await application(),
      kind: kind.toUpperCase(),
      name: name ?? kind.toLowerCase(),
      url,
      attributes: attribute.length === 0 ? undefined : attribute,
      isEnabled: !disabled,
      basic,
    })
    return bank.answer('POST', '/admin/webhooks', body)
  },
})

const show = bankCommand({
  name: 'show',
  summary: 'Reads a webhook',
  words: { '<id>': 'its id' },
  examples: ['webhook show 0190b5a4-…'],
  run: ({ words: [id], openBank }) => openBank().answer('GET', toPath`/admin/webhooks/${id}`),
})

const change = bankCommand({
  name: 'change',
  summary: 'Changes a webhook; what is not given stays',
  words: { '<id>': 'its id' },
  options: {
    name: text('TEXT', 'its name'),
    to: text('URL', 'where messages go'),
    enabled: flag('sends again'),
    ...TARGET,
  },
  examples: ['webhook change 0190b5a4-… --to https://new.bank.example/pawl', 'webhook change 0190b5a4-… --enabled'],
  run: async ({ words: [id], values: { name, to, enabled, attribute, disabled, user, userFile }, openBank }) => {
    if (enabled && disabled) throw usageFault('--enabled and --disabled exclude each other')
    const basic = readBasic(user, userFile)
    const bank = openBank()
    const path = toPath`/admin/webhooks/${id}`
    const before = await bank.call<Readonly<Record<string, unknown>>>('GET', path)
    const body = compact({
      name: name ?? before['name'],
      url: to ?? before['url'],
      attributes: attribute.length === 0 ? before['attributes'] : attribute,
      isEnabled: enabled || (!disabled && before['isEnabled']),
      basic,
    })
    return bank.answer('PUT', path, body)
  },
})

const remove = bankCommand({
  name: 'remove',
  summary: 'Removes a webhook and its deliveries',
  words: { '<id>': 'its id' },
  examples: ['webhook remove 0190b5a4-…'],
  run: ({ words: [id], openBank }) => openBank().answer('DELETE', toPath`/admin/webhooks/${id}`),
})

const rotate = bankCommand({
  name: 'rotate',
  summary: 'Gives a webhook a new secret, which is shown this once',
  words: { '<id>': 'its id' },
  options: { keepPreviousSeconds: text('N', 'how long messages are signed with the old one too') },
  examples: ['webhook rotate 0190b5a4-… --keep-previous-seconds 86400'],
  run: async ({ words: [id], values: { keepPreviousSeconds: keep }, openBank }) => {
    const body = compact({ keepPreviousSeconds: keep === undefined ? undefined : parseCount('--keep-previous-seconds', keep) })
    return openBank().answer('POST', toPath`/admin/webhooks/${id}/secret`, body)
  },
})

const test = bankCommand({
  name: 'test',
  summary: 'Sends a test message to a webhook, and says what the receiver answered',
  more: 'The exit code is 1 when it was not taken.',
  words: { '<id>': 'its id' },
  examples: ['webhook test 0190b5a4-…'],
  run: async ({ words: [id], openBank }) => {
    const json = await openBank().call<{ isDelivered: boolean }>('POST', toPath`/admin/webhooks/${id}/test`, {})
    return { json, exitCode: json.isDelivered ? 0 : 1 }
  },
})

const deliveries = bankCommand({
  name: 'deliveries',
  summary: 'Lists deliveries of a webhook, newest first',
  words: { '<id>': 'its id' },
  options: {
    status: text('STATUS', 'WAITING, DELIVERED or DEAD'),
    ...PAGE_OPTIONS,
  },
  examples: ['webhook deliveries 0190b5a4-… --status DEAD', 'webhook deliveries 0190b5a4-… --all >deliveries.jsonl'],
  run: async (given) => {
    const path = toPath`/admin/webhooks/${given.words[0]}/deliveries`
    const { status } = given.values
    const listing = { path, query: { status }, rows: 'deliveries', cursor: ['before', 'next'], pageMax: 1_000 } as const
    return answerPages(listing, given)
  },
})

const replay = bankCommand({
  name: 'replay',
  summary: 'Lets one delivery, or all dead ones, wait again; a running server sends them',
  words: { '<id>': 'the webhook', '[delivery]': 'the delivery' },
  options: LOCAL,
  examples: ['webhook replay 0190b5a4-…', 'webhook replay 0190b5a4-… 0190b5a5-… --local'],
  run: async ({ words: [id = '', deliveryId], values: { local }, terminal, openBank }) => {
    if (local) return (await import('../local/webhooks.ts')).replayLocal(terminal, id, deliveryId)
    const body = deliveryId === undefined ? { status: 'DEAD' } : { deliveryId }
    return openBank().answer('POST', toPath`/admin/webhooks/${id}/deliveries`, body)
  },
})

export const webhook: Noun = {
  name: 'webhook',
  summary: 'Webhooks: receivers of the bank, what was sent to them, and what was not taken',
  commands: [list, create, show, change, remove, rotate, test, deliveries, replay],
}
