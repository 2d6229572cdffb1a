// POST /encryption/seal: seals the answer of the bank to an envelope that was opened for it (cloud §13.2).
import { type Static, Type } from '@sinclair/typebox'
import { deriveAnswerNonce, hashAnswer, readTicket } from '../../domain/secrets/seal-ticket.ts'
import { named } from '../../http/types.ts'
import { parseBase64 } from '../../lib/base64.ts'
import { equalConstantTime } from '../../lib/bytes.ts'
import { requestRefused } from '../../lib/errors.ts'
import { takeTicket } from '../../storage/request/door-envelopes.ts'
import { door, type DoorCall } from './endpoint.ts'

const AnswerToSeal = named(
  'AnswerToSeal',
  Type.Object({
    sealTicket: Type.String({ minLength: 1, maxLength: 1024, description: 'of `/encryption/open`' }),
    plaintext: Type.String({ description: 'Base64 of the answer, of 256 KiB at most' }),
  }),
)

const SealedAnswer = named(
  'SealedAnswer',
  Type.Object(
    {
      encryptedData: Type.String({ description: 'Base64' }),
      mac: Type.Optional(Type.String({ description: 'Base64, of protocol 3' })),
      nonce: Type.Optional(Type.String({ description: 'Base64, of 3.2 and 3.3' })),
      timestamp: Type.Optional(Type.Integer({ description: 'milliseconds since 1970-01-01 UTC, of 3.2 and newer' })),
    },
    { description: 'The envelope for the phone: the body of the answer, as it is.' },
  ),
)

export const encryptionSeal = door({
  place: 'encryption',
  name: 'seal',
  operationId: 'sealAnswer',
  summary: 'Seals the answer of the bank for the phone whose envelope was opened',
  description:
    'A ticket seals one answer: two under one key would give up both. The same answer may be asked for again and is the same envelope; another one is ' +
    '`ERROR_REQUEST`, and so is a ticket that has ended, that another credential was given, or that is older than a restore of the database.',
  takesKey: false,
  body: AnswerToSeal,
  response: SealedAnswer,
  judge,
})

async function judge({ request, parts, caller, applicationId }: DoorCall<Static<typeof AnswerToSeal>>) {
  const key = parts.installationKeys.doorSeal
  const plaintext = parseBase64(request.plaintext)
  if (plaintext === undefined || plaintext.length > ANSWER_BYTES_MAX)
    throw requestRefused('plaintext', `must be Base64 of at most ${ANSWER_BYTES_MAX} bytes`)
  const ticket = readTicket(key, { username: caller.username, applicationId }, request.sealTicket)
  const protocol = [parts.protocols.v3, parts.protocols.v4].find(({ path }) => path === ticket?.generation)
  if (ticket === undefined || protocol === undefined) throw noTicket()
  if (ticket.scope === 'APPLICATION_SCOPE' && !caller.rights.includes('envelopes:application')) throw noTicket()
  const { ticketId } = ticket
  const plaintextHash = hashAnswer(key, ticketId, plaintext)
  const first = await takeTicket(parts.db, {
    ticketId,
    plaintextHash,
    openedAt: new Date(ticket.openedAt),
    expiresAt: new Date(ticket.expiresAt),
  })
  if (first === undefined) throw noTicket()
  if (!equalConstantTime(first.plaintextHash, plaintextHash)) throw requestRefused('sealTicket', 'has sealed another answer')
  const answer = { nonce: deriveAnswerNonce(key, ticketId, plaintextHash), timestamp: first.sealedAt.getTime() }
  return protocol.importAnswerKeys(ticket.answerKeys)(plaintext, answer) as Static<typeof SealedAnswer>
}

/** The one refusal for every ticket that is not accepted, so that nobody learns whose ticket it is. */
const noTicket = () => requestRefused('sealTicket', 'must be a ticket of this credential that has not ended')

const ANSWER_BYTES_MAX = 256 * 1024
