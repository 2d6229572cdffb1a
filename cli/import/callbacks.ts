// Imports callbacks as webhooks. They are switched off: the operator switches them on when phones and bank have moved.
import { PawlError } from '../../src/lib/errors.ts'
import { parseBase64 } from '../../src/lib/base64.ts'
import { parseUtf8, utf8 } from '../../src/lib/bytes.ts'
import { isForPaths } from '../../src/lib/identifier.ts'
import type { BasicCredentials } from '../../src/domain/webhook/basic.ts'
import { checkWebhook, createWebhook } from '../../src/domain/webhook/webhook.ts'
import { findWebhook } from '../../src/storage/webhook/webhooks.ts'
import { parseJson } from '../json-argument.ts'
import type { TakenApplications } from './applications.ts'
import { explainRefusal, type ImportParts, isSourceId, NOT_FOR_PATHS, parseTexts, SECOND_ROW } from './parts.ts'
import type { SourceCallback } from './source.ts'

export async function importCallbacks(parts: ImportParts, applications: TakenApplications): Promise<void> {
  const { source, record } = parts
  const callbacks = await source.callbacks()
  record.found('webhook', callbacks.length)
  const claimed = new Set<string>()
  for (const callback of callbacks) {
    const { callbackId } = callback
    const isThere = !claimed.has(callbackId) && (await findWebhook(parts.db, callbackId)) !== undefined
    const refusal = claimed.has(callbackId) ? SECOND_ROW : isThere ? undefined : await judge(parts, applications, callback)
    if (refusal !== undefined) {
      record.leaveOut('webhook', callbackId, refusal)
      continue
    }
    claimed.add(callbackId)
    if (isThere) record.alreadyThere('webhook', 1)
    else record.imported('webhook', 1)
  }
}

/** Imports a callback. Returns undefined, or the reason why it is left out. */
async function judge(parts: ImportParts, applications: TakenApplications, callback: SourceCallback): Promise<string | undefined> {
  const { callbackId, applicationId, applicationNumber } = callback
  if (!isSourceId(callbackId)) return 'its id is blank, or has control characters'
  if (!isForPaths(callbackId)) return NOT_FOR_PATHS
  if (applicationId === null) return 'its application is missing'
  if (applications.get(applicationId) !== applicationNumber) return 'its application is left out'
  return take(parts, applicationId, callback)
}

async function take(parts: ImportParts, applicationId: string, callback: SourceCallback): Promise<string | undefined> {
  const { callbackId, name, url } = callback
  const kind = Object.hasOwn(KINDS, callback.type) ? KINDS[callback.type] : undefined
  const attributes = parseTexts(callback.attributes)
  const basic = readBasic(parts, applicationId, callback)
  if (kind === undefined) return `its type is ${callback.type}`
  if (attributes === undefined) return 'its attributes are not a JSON list of names'
  if (typeof basic === 'string') return basic
  const target = {
    name: name !== null && isSourceId(name) ? name : kind.toLowerCase(),
    url: url ?? '',
    attributes,
    basic,
    isEnabled: false,
  }
  try {
    checkWebhook(parts, kind, target)
    if (!parts.isDryRun) await createWebhook(parts, { ...target, applicationId, kind, webhookId: callbackId })
    return undefined
  } catch (error) {
    if (error instanceof PawlError) return explain(error)
    return `the database refuses it: ${explainRefusal(error)}`
  }
}

/** The credentials that a callback sends; null for none; a text with the reason when it cannot be imported. */
function readBasic(
  { openRecord }: ImportParts,
  applicationId: string,
  { authentication, encryption }: SourceCallback,
): BasicCredentials | null | string {
  if (authentication === null || authentication === '') return null
  const stored = encryption === 'AES_HMAC' ? parseBase64(authentication) : utf8(authentication)
  const opened = stored && openRecord(encryption, stored, [applicationId])
  const text = opened && parseUtf8(opened)
  const json = text === undefined ? undefined : parseJson(text)
  if (typeof json !== 'object' || json === null) return 'its credentials cannot be opened'
  // The reference writes its member oAuth2 as `oauth2`: its JSON library makes the first capitals of a getter small.
  const { httpBasic, certificate, oauth2, oAuth2 } = json as Partial<Record<string, Partial<Record<string, unknown>> | null>>
  if (certificate?.['enabled'] === true) return 'it shows a client certificate'
  if (oauth2?.['enabled'] === true || oAuth2?.['enabled'] === true) return 'it gets a token of OAuth 2 first'
  if (httpBasic?.['enabled'] !== true) return null
  const { username, password } = httpBasic
  if (typeof username !== 'string' || typeof password !== 'string' || username.includes(':'))
    return 'its user name or password cannot be sent'
  return { username, password }
}

const explain = ({ violations, message }: PawlError): string =>
  violations.length === 0 ? message : violations.map(({ fieldName, hint }) => `its ${fieldName} ${hint}`).join(', ')

const KINDS: Readonly<Partial<Record<string, 'ACTIVATION' | 'OPERATION'>>> = {
  ACTIVATION_STATUS_CHANGE: 'ACTIVATION',
  OPERATION_STATUS_CHANGE: 'OPERATION',
}
