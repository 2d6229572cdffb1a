// Compares a set-up file with a server, and orders the changes so that each finds what it needs.
import type { Bank } from '../bank.ts'
import { compact, toPath } from '../query.ts'
import { planApplication, planTransfers, type Pair } from './plan-application.ts'
import { planOidcProviders } from './plan-oidc.ts'
import type { Setup, SetupUser, SetupWebhook } from './schema.ts'
import { listWebhooks, type ServerState, type ServerUser, type ServerWebhook, splitUrl } from './state.ts'
import { bodyOf, type Draft, findDifferences, findRest, MADE_BY_ANOTHER, noApplication, type Plan, type Step } from './step.ts'

/** `now`: milliseconds since 1970. `isPruned`: things that the file does not name are removed, if the file has a list of their kind. */
export function planSetup(setup: Setup, state: ServerState, now: number, isPruned: boolean): Plan {
  const draft: Draft = { steps: [], conflicts: [], notInFile: [], notes: [] }
  const pairs = (setup.applications ?? []).map((file, index) => ({
    file,
    path: ['applications', index],
    server: state.applications.find(({ id }) => id === file.id),
  }))
  for (const pair of pairs) planApplication(draft, pair, now)
  const known = new Set([...pairs.map(({ file }) => file), ...state.applications].map(({ id }) => id))
  for (const pair of pairs) planTransfers(draft, pair, known)
  const nameOf = ({ id }: { readonly id: string }): string => `application ${id}`
  // No call removes an application, because phones are bound to it.
  draft.notInFile.push(...findRest(state.applications, new Set(pairs.map(({ file }) => nameOf(file))), nameOf))
  planTexts(draft, setup, state)
  planTemplates(draft, setup, state)
  for (const pair of pairs) planWebhooks(draft, pair)
  for (const pair of pairs) planOidcProviders(draft, pair)
  planUsers(draft, setup, state, { now, known })
  return isPruned ? prune(draft) : draft
}

/** Adds the removals at the end, because earlier steps may end the use of a removed thing. */
function prune(draft: Draft): Plan {
  const removals = draft.notInFile.flatMap(({ what, removal }): Step[] =>
    removal === undefined ? [] : [{ sign: '-', what, differences: [], ...removal }],
  )
  return {
    ...draft,
    steps: [...draft.steps, ...removals],
    notInFile: draft.notInFile.filter(({ removal }) => removal === undefined),
  }
}

function planTexts(draft: Draft, { texts: given }: Setup, state: ServerState): void {
  const texts = given ?? []
  const nameOf = ({ messageKey, language }: { messageKey: string; language: string }) => `text ${messageKey} in ${language}`
  for (const [index, text] of texts.entries()) {
    const found = state.texts.find((one) => nameOf(one) === nameOf(text))
    const differences = findDifferences(['text'], text, found)
    if (differences.length === 0) continue
    draft.steps.push({
      sign: found === undefined ? '+' : '~',
      what: nameOf(text),
      path: ['texts', index],
      differences,
      run: (bank) => bank.call('POST', '/admin/texts', text),
    })
  }
  const removalOf = ({ messageKey, language }: { messageKey: string; language: string }) =>
    toPath`/admin/texts/${messageKey}/${language}`
  draft.notInFile.push(...findRest(state.texts, new Set(texts.map(nameOf)), nameOf, given && ['texts'], removalOf))
}

function planTemplates(draft: Draft, { templates: given }: Setup, state: ServerState): void {
  const templates = given ?? []
  const nameOf = ({ templateName }: { readonly templateName: string }): string => `template ${templateName}`
  for (const [index, template] of templates.entries()) {
    const { templateName, ...members } = template
    const found = state.templates.find((one) => one.templateName === templateName)
    // A template is compared as a whole: it does not have a member that the file leaves out.
    const names = [...new Set([...Object.keys(members), ...Object.keys(found ?? {})])].filter((name) => name !== 'templateName')
    const whole = (one: object) => ({ activationFlag: null, ...one })
    const differences =
      found === undefined ? findDifferences(names, members) : findDifferences(names, whole(members), whole(found))
    if (found !== undefined && differences.length === 0) continue
    const what = nameOf(template)
    draft.steps.push({
      sign: found === undefined ? '+' : '~',
      what,
      path: ['templates', index],
      differences,
      run: async (bank) =>
        void (found === undefined
          ? await bank.call('POST', '/admin/templates', template)
          : await bank.call('PUT', toPath`/admin/templates/${templateName}`, template)),
    })
  }
  const removalOf = ({ templateName }: { readonly templateName: string }): string => toPath`/admin/templates/${templateName}`
  draft.notInFile.push(...findRest(state.templates, new Set(templates.map(nameOf)), nameOf, given && ['templates'], removalOf))
}

const WEBHOOK = ['url', 'attributes', 'isEnabled']

function planWebhooks(draft: Draft, { file: { id: application, webhooks: given }, path, server }: Pair): void {
  const webhooks = given ?? []
  const owner = given && [...path, 'webhooks']
  const nameOf = ({ kind, name }: { kind: string; name: string }): string => `webhook ${kind} ${name} of ${application}`
  const all = server?.webhooks ?? []
  for (const [index, webhook] of webhooks.entries()) {
    const what = nameOf(webhook)
    const at = [...path, 'webhooks', index]
    const [found, second] = all.filter((one) => nameOf(one) === what)
    if (found !== undefined && second !== undefined) {
      const problem = `the server has several of that kind and name (${found.id}, ${second.id}): pawl webhook change or remove tells them apart`
      draft.conflicts.push({ path: at, kind: 'refused', problem, mayPass: true })
      continue
    }
    if (found === undefined) {
      const lost = `if it is there now, pawl webhook rotate gives it a secret that is known`
      const run = makeWebhook(what, { application, ...webhook })
      draft.steps.push({ sign: '+', what, path: at, differences: findDifferences(WEBHOOK, shown(webhook)), lost, run })
      continue
    }
    // A query that only the server has may be a secret of the receiver, so it stays. A credential that may only read sees the rest in another
    // spelling.
    const url = hrefOf(splitUrl(found.url).shown) === hrefOf(webhook.url) ? found.url : webhook.url
    const differences = findDifferences(WEBHOOK, { ...webhook, url }, { ...found })
    if (differences.length === 0) continue
    if (found.basicUsername !== undefined && originOf(url) !== originOf(found.url)) {
      const problem = `the password of ${found.basicUsername} is for another server: pawl webhook change ${found.id} --to URL --user-file FILE`
      draft.conflicts.push({ path: [...at, 'url'], kind: 'refused', problem })
      continue
    }
    const { attributes = found.attributes, isEnabled = found.isEnabled } = webhook
    draft.steps.push({
      sign: '~',
      what,
      path: at,
      differences: differences.map(({ name, before, after }) =>
        name === 'url' ? { name, before: hide(before), after: hide(after) } : { name, before, after },
      ),
      run: (bank) => bank.call('PUT', toPath`/admin/webhooks/${found.id}`, { name: found.name, url, attributes, isEnabled }),
    })
  }
  draft.notInFile.push(...findRest(all, new Set(webhooks.map(nameOf)), nameOf, owner, ({ id }) => toPath`/admin/webhooks/${id}`))
}

const hide = (url: unknown): string => splitUrl(String(url)).shown + (splitUrl(String(url)).query === '' ? '' : '?…')
const shown = <W extends { readonly url: string }>(webhook: W): W => ({ ...webhook, url: hide(webhook.url) })
const hrefOf = (url: string): string => (URL.canParse(url) ? new URL(url).href : url)
const originOf = (url: string): string => (URL.canParse(url) ? new URL(url).origin : url)

type NewWebhook = SetupWebhook & { readonly application: string }

/** Makes a webhook. The server accepts two of one name; of two that are made at the same time, the first one stays. */
function makeWebhook(what: string, webhook: NewWebhook): Step['run'] {
  return async (bank, tell) => {
    const { id, secret } = await bank.call<{ id: string; secret: string }>('POST', '/admin/webhooks', webhook)
    const first = await findFirst(bank, webhook).catch(async (error: unknown) => {
      await tell({ what, name: 'secret', value: secret })
      throw error
    })
    if (first === undefined || first.id === id) return tell({ what, name: 'secret', value: secret })
    await bank.call('DELETE', toPath`/admin/webhooks/${id}`)
    const { name, url, attributes = first.attributes, isEnabled = first.isEnabled } = webhook
    const isOther = findDifferences(WEBHOOK, { ...webhook }, { ...first }).length > 0
    if (isOther) await bank.call('PUT', toPath`/admin/webhooks/${first.id}`, { name, url, attributes, isEnabled })
    return MADE_BY_ANOTHER
  }
}

async function findFirst(bank: Bank, { application, kind, name }: NewWebhook): Promise<ServerWebhook | undefined> {
  const order = (one: ServerWebhook, other: ServerWebhook): number =>
    one.createdAt - other.createdAt || (one.id < other.id ? -1 : 1)
  const all = await listWebhooks(bank)
  return all.filter((one) => one.application === application && one.kind === kind && one.name === name).toSorted(order)[0]
}

const USER = ['rights', 'allowedAddresses', 'certificates']
/** The call that changes each member. */
const USER_CALLS: Readonly<Record<string, readonly [method: string, path: string]>> = {
  rights: ['PATCH', ''],
  allowedAddresses: ['PUT', '/allowed-addresses'],
  certificates: ['PUT', '/certificates'],
}

/** `known`: ids of the applications of file and server. */
function planUsers(
  draft: Draft,
  { users: given }: Setup,
  state: ServerState,
  { now, known }: { readonly now: number; readonly known: ReadonlySet<string> },
): void {
  const users = given ?? []
  const nameOf = ({ username }: { readonly username: string }): string => `user ${username}`
  for (const [index, user] of users.entries()) {
    const { username, role, application } = user
    const what = nameOf(user)
    const path = ['users', index]
    if (application !== undefined && !known.has(application))
      draft.conflicts.push({ path: [...path, 'application'], kind: 'missing', problem: noApplication(application) })
    const found = state.users.find((one) => one.username === username)
    const differences = findDifferences(USER, user, { ...found })
    // The call that makes the credential sets its addresses, so that it never works from elsewhere.
    const addresses = found === undefined ? bodyOf(differences.filter(({ name }) => name === 'allowedAddresses')) : {}
    const calls: Step['run'] = async (bank) => {
      for (const { name, after } of differences) {
        const [method, rest] = USER_CALLS[name] ?? ['', '']
        if (!(name in addresses)) await bank.call(method, toPath`/admin/users/${username}` + rest, { [name]: after })
      }
    }
    if (found !== undefined) {
      draft.conflicts.push(...findFixed(user, found, path))
      if (differences.length > 0) draft.steps.push({ sign: '~', what, path, differences, run: calls })
      continue
    }
    const expiresAt = user.expiresAt === undefined ? undefined : Date.parse(user.expiresAt)
    if (expiresAt !== undefined && expiresAt <= now) {
      draft.notes.push(`${what} has ended: it is left out`)
      continue
    }
    draft.steps.push({
      sign: '+',
      what,
      path,
      differences: [...findDifferences(['role', 'application', 'expiresAt'], user), ...differences],
      lost: `if it is there now, pawl user password ${username} gives it one that is known`,
      run: async (bank, tell) => {
        const body = compact({ username, role, application, expiresAt, ...addresses })
        const made = await bank.call<{ password: string }>('POST', '/admin/users', body)
        await tell({ what, name: 'password', value: made.password })
        await calls(bank, tell)
      },
    })
  }
  // Administrators stay, because a file that names none would lock everybody out.
  const removalOf = ({ username, role }: ServerUser): string | undefined =>
    role === 'admin' ? undefined : toPath`/admin/users/${username}`
  draft.notInFile.push(...findRest(state.users, new Set(users.map(nameOf)), nameOf, given && ['users'], removalOf))
}

/** Finds a difference that cannot be changed in a credential. */
function findFixed(file: SetupUser, server: ServerUser, path: Step['path']): Draft['conflicts'] {
  const remedy = `pawl user remove ${file.username} and apply again, or write what is there`
  const fixed = { role: server.role, application: server.application, expiresAt: formatTime(server.expiresAt) }
  const given = {
    role: file.role,
    application: file.application,
    expiresAt: file.expiresAt && formatTime(Date.parse(file.expiresAt)),
  }
  return findDifferences(Object.keys(fixed), given, fixed).map(({ name, before }) => ({
    path: [...path, name],
    kind: 'refused',
    problem: `the server has ${before === undefined ? 'none' : String(before)}, and no call changes it: ${remedy}`,
  }))
}

/** Formats a time in milliseconds since 1970. */
export const formatTime = (time: number | undefined): string | undefined =>
  time === undefined ? undefined : new Date(time).toISOString().replace('.000Z', 'Z')
