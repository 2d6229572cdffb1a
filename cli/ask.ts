// Sends one request to a server of pawl, with the client certificate that the environment names, if any.
import { request as send } from 'node:https'
import { createSecureContext } from 'node:tls'
import type { Environment } from './environment.ts'
import { explainFault, Fault } from './fault.ts'
import { readFile } from './json-argument.ts'

export interface Question {
  readonly method: string
  readonly headers?: Readonly<Record<string, string>>
  readonly body?: string
  readonly timeoutMs: number
}

export interface Reply {
  readonly status: number
  readonly text: string
}

export const hasClientCertificate = (env: Environment): boolean => Boolean(env['PAWL_CLIENT_CERTIFICATE'])

/**
 * Sends a request and resolves with the answer. Rejects when no answer comes within `timeoutMs`, and with a Fault when the client certificate
 * cannot be read. NODE_EXTRA_CA_CERTS names the authority of a server whose certificate no public authority signed.
 */
export async function ask(env: Environment, url: string, { method, headers, body, timeoutMs }: Question): Promise<Reply> {
  const signal = AbortSignal.timeout(timeoutMs)
  const { PAWL_CLIENT_CERTIFICATE: certificate, PAWL_CLIENT_KEY: key } = env
  if (!certificate || !url.startsWith('https:')) {
    // A redirect is no answer of pawl. Followed, it would lose the credential, and a POST would become a GET.
    const options = {
      method,
      signal,
      redirect: 'manual',
      ...(headers && { headers }),
      ...(body !== undefined && { body }),
    } as const
    const reply = await fetch(url, options)
    return { status: reply.status, text: await reply.text() }
  }
  // fetch cannot send a client certificate, so node:https does. One file may hold the certificate and its key.
  const shown = readCertificate(certificate, key || certificate)
  return new Promise((resolve, reject) => {
    const outgoing = send(url, { method, headers: { ...headers }, signal, ...shown }, (incoming) => {
      let text = ''
      incoming.setEncoding('utf8').on('data', (chunk: string) => {
        text += chunk
      })
      incoming.on('end', () => resolve({ status: incoming.statusCode ?? 0, text }))
      incoming.on('error', reject)
    })
    outgoing.on('error', reject)
    outgoing.end(body)
  })
}

/** Reads a certificate and its key, in PEM. Throws a Fault when a file cannot be read, or when the two are no certificate with its key. */
function readCertificate(certificate: string, key: string) {
  const pem = { cert: readFile('PAWL_CLIENT_CERTIFICATE', certificate), key: readFile('PAWL_CLIENT_KEY', key) }
  try {
    createSecureContext(pem)
  } catch (error) {
    throw new Fault(
      'usage',
      `PAWL_CLIENT_CERTIFICATE and PAWL_CLIENT_KEY are no certificate with its key (${explainFault(error)})`,
    )
  }
  return pem
}
