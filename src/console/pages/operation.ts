// One operation: its status as it changes, what the phone shows, and the approval without a connection.
import { readOperation } from '../../domain/operation/operation.ts'
import { renderOperationForm } from '../../domain/operation/form.ts'
import { chooseTexts, type OperationParameters } from '../../domain/template/template.ts'
import { PawlError } from '../../lib/errors.ts'
import { fitsQrCode } from '../qr-code.ts'
import {
  actionForm,
  ago,
  backTo,
  badge,
  card,
  code,
  exactTime,
  facts,
  field,
  guardedForm,
  live,
  pageHead,
  qr,
  stateBadge,
} from '../elements.ts'
import { html, type Markup, nothing } from '../markup.ts'
import { done, type Form, link, type Page, type PageCall, type View } from '../page.ts'
import { phonePreview } from '../phone-preview.ts'

interface Answer {
  readonly operationId: string
  readonly userId: string
  readonly status: string
  readonly template: string
  readonly operationType: string
  readonly parameters: OperationParameters
  readonly failureCount: number
  readonly maxFailureCount: number
  readonly timestampCreated: number
  readonly timestampExpires: number
  readonly proximityOtp?: string
}

/** A QR code that was made for an approval without a connection. */
interface OfflineCode {
  readonly text: string
  readonly nonce: string
}

export const operation: Page = {
  path: '/operations/:id',
  section: 'operations',
  // After a wrong password the code is still the one that the user scanned.
  render: (call) => render(call, readOffline(call.form)),
  actions: {
    cancel: async (call) => {
      const operationId = call.params['id'] ?? ''
      await call.api.send('DELETE', '/operations', undefined, { operationId, statusReason: call.form.optional('statusReason') })
      return done(call, `/operations/${operationId}`, 'canceled')
    },
    qr: async (call) => {
      const query = { operationId: call.params['id'] }
      const { operationQrCodeData, nonce } = await call.api.get<{ operationQrCodeData: string; nonce: string }>(
        '/operations/offline/qr',
        query,
      )
      return render(call, { text: operationQrCodeData, nonce })
    },
    otp: async (call) => {
      const operationId = call.params['id'] ?? ''
      const { nonce = '' } = readOffline(call.form) ?? {}
      const otp = call.form.text('otp')
      await call.api.send('POST', '/operations/offline/otp', { operationId, otp, nonce })
      return done(call, `/operations/${operationId}`, 'approved')
    },
  },
}

/** The code that a form brings back; undefined where it brings none. Throws REQUEST_INVALID for a text that was none. */
function readOffline(form: Form): OfflineCode | undefined {
  const [text, nonce] = [form.text('qr'), form.optional('nonce')]
  if (!fitsQrCode(text)) throw new PawlError('REQUEST_INVALID', { detail: 'a text that no QR code was made of' })
  return nonce === undefined ? undefined : { text, nonce }
}

async function render(call: PageCall, offline: OfflineCode | undefined): Promise<View> {
  const operationId = call.params['id'] ?? ''
  const answer = await call.api.get<Answer>('/operations', { operationId })
  const isPending = answer.status === 'PENDING'
  const back = backTo(link(call, '/operations'), 'Operations')
  return {
    title: `Operation ${answer.template}`,
    body: html`${pageHead(answer.template, { lead: html`for <a href="${link(call, '/registrations', { userId: answer.userId })}">${answer.userId}</a>, ${answer.operationType}`, back })}
      <div class="columns"><div>
        ${live('status', link(call, `/operations/${operationId}`), isPending ? 2 : undefined, renderStatus(call, answer))}
        ${isPending && call.isActing && html`<div class="while-live">${renderOffline(call, answer, offline)}</div>`}
        ${renderParameters(answer)}
        ${isPending && call.isActing && html`<div class="while-live">${card('Change', html`<div class="actions">${guardedForm(call, 'cancel', 'Cancel the operation', { question: 'The phone can approve it no more.', fields: field(call, 'statusReason', 'Reason', { hint: 'Up to 32 characters; the phone may show it.' }) })}</div>`)}</div>`}
      </div><div>${card('On the phone', await renderPreview(call, operationId))}</div></div>`,
  }
}

/** From the texts that the operation was made with, which a later change of its template leaves as they are. */
async function renderPreview({ parts, application = '' }: PageCall, operationId: string): Promise<Markup> {
  const row = await readOperation(parts, application, operationId.toLowerCase())
  const texts = (await parts.templateTexts([row.templateRevisionId])).get(row.templateRevisionId)
  if (texts === undefined) return nothing
  const { parameters, riskFlags, proximitySeed, language, data } = row
  const form = renderOperationForm({
    ...chooseTexts(texts, [language]),
    parameters,
    riskFlags,
    hasProximityCheck: proximitySeed !== null,
  })
  return phonePreview(form, data)
}

const renderStatus = (call: PageCall, answer: Answer): Markup =>
  card(
    'Status',
    facts([
      [
        'Status',
        html`${stateBadge(answer.status)} ${answer.status === 'PENDING' && html`<small>waits for the phone, this page follows it</small>`}`,
      ],
      [
        'Wrong codes',
        html`${answer.failureCount} of ${answer.maxFailureCount} ${answer.failureCount > 0 && badge('wait', 'counting')}`,
      ],
      answer.proximityOtp !== undefined && ['Proximity password', html`<span class="fingerprint">${answer.proximityOtp}</span>`],
      ['Created', exactTime(answer.timestampCreated)],
      [
        answer.timestampExpires > call.now ? 'Expires' : 'Expired',
        html`${ago(call.now, answer.timestampExpires)} <small>${exactTime(answer.timestampExpires)}</small>`,
      ],
      ['Operation', code(answer.operationId)],
    ]),
  )

const renderParameters = ({ parameters }: Answer): Markup | false =>
  Object.keys(parameters).length > 0 && card('Parameters', facts(Object.entries(parameters)))

function renderOffline(call: PageCall, { userId }: Answer, offline: OfflineCode | undefined): Markup {
  if (offline === undefined) {
    return card(
      'Without a connection',
      html`<p>The phone scans a QR code and shows a password of two groups of eight digits, which approves the operation.</p>
      ${actionForm(call, 'qr', 'Make a QR code', { tone: 'plain' })}`,
    )
  }
  return card(
    'Without a connection',
    html`<div class="phones">${qr(offline.text, `QR code of the operation for the phone of ${userId}`)}
      <div class="fields"><p>The user scans this with the app, checks what it shows, and reads the digits.</p>
      ${actionForm(call, 'otp', 'Approve', {
        hidden: { qr: offline.text, nonce: offline.nonce },
        fields: field(call, 'otp', 'One-time password', { isRequired: true, placeholder: '12345678-12345678' }),
      })}</div></div>`,
  )
}
