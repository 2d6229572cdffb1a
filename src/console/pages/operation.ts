// Shows one operation: its history, the view of the phone, and the approval without a connection.
import type { DeviceEvent } from '../../api/cloud/admin/audit.ts'
import type { ListedRegistration } from '../../api/cloud/admin/registrations.ts'
import type { DeviceOperation } from '../../api/cloud/operations.ts'
import { readOperationEnd, readOwnerlessRows } from '../../domain/operation/operation.ts'
import { PawlError } from '../../lib/errors.ts'
import { at, unlessRefused } from '../api.ts'
import { readDeliverySteps } from '../deliveries.ts'
import { readDeviceEvents, readMembers } from '../device-events.ts'
import {
  actionForm,
  ago,
  backTo,
  card,
  type Choice,
  code,
  exactTime,
  facts,
  field,
  fitsQrCode,
  guardedForm,
  live,
  pageHead,
  qr,
  reason,
  select,
  stateBadge,
  type Step,
  timeline,
  type Tone,
} from '../elements.ts'
import { html, type Markup, nothing } from '../markup.ts'
import { done, type Form, link, type Page, type PageCall, type View } from '../page.ts'
import { phonePreview, readShown, sayOperation, type ShownOperation } from '../phone-preview.ts'
import { sayState } from '../words.ts'

/** A QR code that was made for an approval without a connection. */
interface OfflineCode {
  readonly text: string
  readonly nonce: string
  /** The phone that scans the code, if the user has several. */
  readonly registrationId: string | undefined
}

export const operation: Page = {
  path: '/operations/:id',
  section: 'operations',
  // After a wrong password the page keeps the code that the user scanned.
  render: (call) => render(call, readOffline(call.form)),
  actions: {
    cancel: async (call) => {
      const operationId = call.params.id
      await call.api.send('DELETE', '/operations', undefined, { operationId, statusReason: call.form.optional('statusReason') })
      return done(call, `/operations/${operationId}`, 'canceled')
    },
    qr: async (call) => {
      const registrationId = call.form.optional('registrationId')
      const query = { operationId: call.params.id, registrationId }
      const { operationQrCodeData, nonce } = await call.api.get<{ operationQrCodeData: string; nonce: string }>(
        '/operations/offline/qr',
        query,
      )
      return render(call, { text: operationQrCodeData, nonce, registrationId })
    },
    otp: async (call) => {
      const operationId = call.params.id
      const { nonce = '', registrationId } = readOffline(call.form) ?? {}
      const otp = call.form.text('otp')
      await call.api.send('POST', '/operations/offline/otp', { operationId, otp, nonce, registrationId })
      return done(call, `/operations/${operationId}`, 'approved')
    },
  },
}

/** The code in a sent form; undefined if it has none. Throws REQUEST_INVALID for a text that is too long for a QR code. */
function readOffline(form: Form): OfflineCode | undefined {
  const [text, nonce] = [form.text('qr'), form.optional('nonce')]
  if (!fitsQrCode(text)) throw new PawlError('REQUEST_INVALID', { detail: 'a text that no QR code was made of' })
  return nonce === undefined ? undefined : { text, nonce, registrationId: form.optional('registrationId') }
}

async function render(call: PageCall, offline: OfflineCode | undefined): Promise<View> {
  const operationId = call.params.id.toLowerCase()
  const answer = await call.api.get<DeviceOperation>(at`/v2/operations/${operationId}`)
  const [shown, timeline] = await Promise.all([readShown(call, [operationId]), operationTimeline(call, answer)])
  const known = shown.get(operationId)
  const isPending = answer.status === 'PENDING'
  const back = backTo(link(call, '/operations'), 'Operations')
  const line = known && sayOperation(known.form)
  const { userId } = answer
  const parameters = Object.entries(answer.parameters)
  const whom = userId === undefined ? 'nobody yet' : html`<a href="${link(call, '/registrations', { userId })}">${userId}</a>`
  const lead = html`for ${whom}${line?.detail !== undefined && html` · ${line.detail}`} · ${answer.template}, ${answer.operationType}`
  const cancel =
    isPending &&
    call.isActing &&
    html`<div class="while-live">${card('Actions', html`<div class="actions">${guardedForm(call, 'cancel', 'Cancel the operation', { question: 'The phone can approve it no more.', fields: (own) => field(own, 'statusReason', 'Reason', { hint: 'Up to 32 characters; the phone may show it.' }) })}</div>`)}</div>`
  return {
    title: `Operation ${answer.template}`,
    body: html`${pageHead(line?.title ?? answer.template, { lead, back })}
      <div class="columns"><div>
        ${live('status', link(call, `/operations/${operationId}`), isPending ? 2 : undefined, html`<div class="stack">${renderStatus(call, answer, known)}${card('Timeline', timeline)}</div>`)}
        ${isPending && call.isActing && html`<div class="while-live">${await renderOffline(call, answer, offline)}</div>`}
        ${cancel}
      </div><div>${known !== undefined && card('On the phone', phonePreview(known.form, known.data))}${parameters.length > 0 && card('Parameters', facts(parameters))}</div></div>`,
  }
}

const renderStatus = (call: PageCall, answer: DeviceOperation, shown: ShownOperation | undefined): Markup => {
  const { status, failureCount, maxFailureCount, proximityOtp, timestampCreated, timestampExpires, operationId } = answer
  const { registrationId, applicationFlag } = answer
  const isPending = status === 'PENDING'
  const why = shown?.statusReason ?? undefined
  return card(
    'Status',
    facts([
      ['Status', html`${stateBadge(status)} ${isPending && html`<small>waits for the phone, this page follows it</small>`}`],
      why !== undefined && ['Reason', reason(why)],
      (isPending || failureCount > 0) && ['Wrong codes', html`${failureCount} of ${maxFailureCount}`],
      isPending && proximityOtp !== undefined && ['Proximity password', html`<span class="fingerprint">${proximityOtp}</span>`],
      ['Created', exactTime(timestampCreated)],
      // If an operation ended before this time, the timeline shows when.
      (isPending || status === 'EXPIRED') && [
        isPending ? 'Expires' : 'Expired',
        html`${ago(call.now, timestampExpires)} <small>${exactTime(timestampExpires)}</small>`,
      ],
      registrationId !== undefined && [
        'Only on',
        html`<a href="${link(call, `/registrations/${registrationId}`)}">this device</a> ${code(registrationId, 'the id of the registration')}`,
      ],
      applicationFlag !== undefined && ['Demands the flag', applicationFlag],
      ['Operation', code(operationId, 'the id of the operation')],
    ]),
  )
}

async function renderOffline(
  call: PageCall,
  { userId, registrationId }: DeviceOperation,
  offline: OfflineCode | undefined,
): Promise<Markup> {
  if (offline === undefined) {
    const phones = userId !== undefined && registrationId === undefined && (await choosePhone(call, userId))
    return card(
      'Without a connection',
      html`<p>The phone scans a QR code and shows a password of two groups of eight digits, which approves the operation.</p>
      ${actionForm(call, 'qr', 'Make a QR code', { tone: 'plain', fields: () => phones })}`,
    )
  }
  return card(
    'Without a connection',
    html`<div class="phones">${qr(offline.text, `QR code of the operation for the phone of ${userId ?? 'nobody yet'}`)}
      <div class="fields"><p>The user scans this with the app, checks what it shows, and reads the digits.</p>
      ${actionForm(call, 'otp', 'Approve', {
        hidden: { qr: offline.text, nonce: offline.nonce, registrationId: offline.registrationId ?? '' },
        fields: (own) => field(own, 'otp', 'One-time password', { isRequired: true, placeholder: '12345678-12345678' }),
      })}</div></div>`,
  )
}

/** Lets the caller choose the phone that makes the password, if the user has several. */
async function choosePhone(call: PageCall, userId: string): Promise<Markup> {
  const { registrations } = await call.api.get<{
    registrations: readonly { registrationId: string; name?: string; platform?: string }[]
  }>('/v2/registrations', { userId, state: 'ACTIVE' })
  const phones = registrations.map(
    ({ registrationId, name, platform }): Choice => [registrationId, `${name || registrationId}, ${platform ?? 'unknown'}`],
  )
  return phones.length > 1 ? select(call, 'registrationId', 'Phone that scans it', phones) : nothing
}

/** The timeline of an operation, oldest first. */
async function operationTimeline(call: PageCall, operation: DeviceOperation): Promise<Markup> {
  const [events, deliveries] = await Promise.all([
    readEvents(call, operation),
    readDeliverySteps(call, 'OPERATION', operation.operationId),
  ])
  const by = events.find(({ eventType }) => eventType === 'operation_created')?.verifiedBy
  const created: Step = { title: 'Created', at: operation.timestampCreated, tone: 'info', note: by && html`by ${by}` }
  const changes = events.filter(({ eventType }) => eventType !== 'operation_created').map((item) => toStep(call, item))
  const steps = [created, ...changes, ...deliveries]
  if (operation.status === 'EXPIRED') steps.push({ title: 'Expired', at: operation.timestampExpires, tone: 'off' })
  return timeline(
    call.now,
    steps.toSorted((a, b) => (a.at ?? Number.POSITIVE_INFINITY) - (b.at ?? Number.POSITIVE_INFINITY)),
  )
}

/**
 * Reads the actions of phone and bank on the operation from the audit log of its user. While nobody has claimed it, its rows are of the user of its
 * device, and of no user where it is for no device (cloud §7).
 */
async function readEvents(call: PageCall, operation: DeviceOperation): Promise<readonly DeviceEvent[]> {
  const { api, application: applicationId, parts } = call
  const { operationId, registrationId: id, timestampCreated: timestampFrom, timestampExpires } = operation
  // An operation has no events after its end. Later events of its user are not asked for, because they would push older ones out of the answer.
  const [end, device] = await Promise.all([
    readOperationEnd(parts, operationId),
    operation.userId === undefined && id !== undefined
      ? unlessRefused(api.get<ListedRegistration>(at`/admin/applications/${applicationId}/registrations/${id}`, { limit: 1 }))
      : undefined,
  ])
  const timestampTo = Math.min(call.now, timestampExpires, (end?.getTime() ?? timestampExpires) + DECISION_MS)
  const userId = operation.userId ?? device?.userId
  const range = { from: new Date(timestampFrom), to: new Date(timestampTo) }
  const [found, ownerless] = await Promise.all([
    userId !== undefined && unlessRefused(readDeviceEvents(call, userId, { timestampFrom, timestampTo, limit: EVENTS_MAX })),
    readOwnerlessRows(parts, { applicationId, operationId, ...range }),
  ])
  return [
    ...ownerless.map(({ occurredAt, verifiedBy, ...row }) => ({
      ...row,
      timestamp: occurredAt.getTime(),
      ...(verifiedBy !== null && { verifiedBy }),
    })),
    ...(found ? found.items : []).filter(({ eventType, eventData }) => isAbout(operationId, eventType, eventData)),
  ]
}

/** Whether an event is about the operation, or about an offline one-time password for it, right or wrong. */
const isAbout = (operationId: string, eventType: string, eventData: string): boolean =>
  eventData.includes(operationId) && (eventType.startsWith('operation_') || eventType.startsWith('offline_otp_'))

function toStep(call: PageCall, { activationId, eventType, eventData, timestamp, verifiedBy }: DeviceEvent): Step {
  const what = eventType.replace('operation_', '')
  const why = readMembers(eventData)?.find(([name]) => name === 'reason')?.[1]
  const by =
    what === 'canceled'
      ? html`by ${verifiedBy ?? 'the bank'}`
      : html`by <a href="${link(call, at`/registrations/${activationId}`)}">the phone</a>`
  return {
    title: sayState(what),
    at: timestamp,
    tone: TONES[what] ?? 'bad',
    note: html`${by}${why !== undefined && html` · ${reason(why)}`}`,
  }
}

const TONES: Readonly<Record<string, Tone>> = { approved: 'good', offline_otp_ok: 'good', canceled: 'off', claimed: 'info' }

const EVENTS_MAX = 200
/** The time of a decision is taken before its code is checked, and that of its event afterwards. A statement has eight seconds. */
const DECISION_MS = 10_000
