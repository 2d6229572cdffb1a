// Shows an error as a page: a failure before there is a page, or a refusal of the API.
import type { FastifyReply } from 'fastify'
import type { ErrorRenderer } from '../http/errors.ts'
import type { ErrorCode } from '../lib/errors.ts'
import type { Refusal } from './api.ts'
import type { Assets } from './assets.ts'
import { renderBare } from './layout.ts'
import { empty, pageHead } from './elements.ts'
import { html } from './markup.ts'
import { rootOf, type View } from './page.ts'

/** Renders what is thrown in the console. */
export const createErrorPage =
  (assets: Assets): ErrorRenderer =>
  (error, request, reply) => {
    const { status, title, text } = TEXTS[error.code] ?? FAILED
    if (error.retryAfterSeconds !== undefined) void reply.header('retry-after', error.retryAfterSeconds)
    send(assets, reply, {
      status,
      title,
      text,
      note: [...error.violations.map(({ fieldName, hint }) => `${fieldName} ${hint}`), `Request ${request.id}`].join(', '),
    })
  }

/** Renders a refusal of the API that comes before the page is known, such as that of an application that does not exist. */
export const createRefusalPage =
  (assets: Assets) =>
  (refusal: Refusal, reply: FastifyReply): FastifyReply =>
    send(assets, reply, { status: refusal.status, ...describe(refusal) })

/** What stands in place of a page that the API refused to give something; the menu stays. */
export function refusalView(refusal: Refusal, overview: string): View {
  const { title, text, note } = describe(refusal)
  const back = html`<a class="button is-plain" href="${overview}">To the overview</a>`
  return { title, body: html`${pageHead(title)}${empty(text, note, back)}` }
}

const describe = ({ status, message, violations }: Refusal): Omit<Failure, 'status'> => ({
  title: status >= 500 ? 'Not available' : status === 403 ? 'Not for this credential' : 'Not found',
  text: `${message}.`,
  note: violations.map(({ fieldName, hint }) => `${fieldName} ${hint}`).join(', '),
})

interface Failure {
  readonly status: number
  readonly title: string
  readonly text: string
  readonly note: string
}

function send(assets: Assets, reply: FastifyReply, { status, title, text, note }: Failure): FastifyReply {
  const root = rootOf(reply.request)
  return reply
    .code(status)
    .type('text/html; charset=utf-8')
    .send(
      renderBare(
        assets,
        root,
        title,
        html`<h1>${title}</h1><p>${text}</p>${note !== '' && html`<p class="hint">${note}</p>`}<p><a class="button is-plain" href="${root}">To the overview</a></p>`,
      ),
    )
}

const FAILED = { status: 500, title: 'That failed', text: 'Something went wrong here. The log names the request.' }
const TEXTS: Readonly<Partial<Record<ErrorCode, Omit<Failure, 'note'>>>> = {
  PATH_UNKNOWN: { status: 404, title: 'No such page', text: 'Nothing is at this address.' },
  REQUEST_INVALID: {
    status: 400,
    title: 'Not accepted',
    text: 'The form did not come from a page of this session, or it is too long. Go back, load the page again, and send it once more.',
  },
  UNAVAILABLE: {
    status: 503,
    title: 'Not available',
    text: 'The database or the server has no room right now. Try again in a moment.',
  },
  TOO_MANY_REQUESTS: { status: 429, title: 'Too fast', text: 'Too many requests. Try again in a minute.' },
}
