// Examines the server from inside, at its listeners, and from outside, at the address that phones use.
import { fetchKeySet } from '../../src/domain/credential/key-set.ts'
import { OF_OPERATOR } from '../../src/lib/outbound.ts'
import { ask, hasClientCertificate } from '../ask.ts'
import { CERTIFICATES } from '../bank.ts'
import { bankUrl, phonesUrl } from '../environment.ts'
import { explainFault } from '../fault.ts'
import type { Settings } from '../local/database.ts'
import { type Finding, fault, type Instruments, judgeEnd, ok, skipped, warning } from './finding.ts'

const TIMEOUT_MS = 5_000

/** Runs every check that sends HTTP requests. */
export async function examineNetwork({ config }: Settings, instruments: Instruments): Promise<readonly Finding[]> {
  const { env } = instruments
  const listeners = await Promise.all([...new Set([phonesUrl(env), bankUrl(env)])].map((url) => examineInside(url, env)))
  const { publicUrl, jwtJwksUrl } = config
  const inside = jwtJwksUrl === undefined ? listeners : [...listeners, await examineTokenKeys(jwtJwksUrl)]
  if (publicUrl === undefined)
    return [
      ...inside,
      warning(
        'public URL',
        'PAWL_PUBLIC_URL is not set: apps are told the address of the listener',
        'set it to what phones call',
      ),
    ]
  const outside = await examineOutside(publicUrl)
  return [
    ...inside,
    ...outside,
    ...(outside.some(({ state }) => state === 'fault') ? [] : [await examineExposure(publicUrl)]),
    await examineTls(new URL(publicUrl), instruments),
  ]
}

async function examineInside(url: string, env: Instruments['env']): Promise<Finding> {
  if (url.startsWith('https:') && !hasClientCertificate(env))
    return skipped('server', `${url} asks for a client certificate, and PAWL_CLIENT_CERTIFICATE names none`)
  try {
    const { status, text } = await ask(env, `${url}/health/ready`, { method: 'GET', timeoutMs: TIMEOUT_MS })
    if (status === 200) return ok('server', `${url} is ready`)
    return status === 503
      ? fault(
          'server',
          `${url} is not ready${reasonIn(text)}`,
          'its log says why: the database does not answer, or it is about to stop',
        )
      : fault(
          'server',
          `${url} is no server of pawl (HTTP ${status})`,
          'another program has this port: PAWL_PORT chooses another',
        )
  } catch (error) {
    const reason = reasonOf(error)
    return url.startsWith('https:') && /certificate|signature|altname/i.test(reason)
      ? fault(
          'server',
          `${url} and this command do not take each other's certificate (${reason})`,
          `look at the end and the names of both; ${CERTIFICATES}`,
        )
      : warning('server', `nothing answers at ${url} (${reason})`, 'pawl serve starts it')
  }
}

async function examineTokenKeys(url: string): Promise<Finding> {
  const todo = 'check PAWL_JWT_JWKS_URL, and that this machine may reach it: until then access tokens are answered 503'
  try {
    const { keys } = await fetchKeySet({ name: 'PAWL_JWT_JWKS_URL', url, rules: OF_OPERATOR })
    return keys.length > 0
      ? ok('token keys', `${new URL(url).origin} gives ${keys.length} keys for access tokens`)
      : fault('token keys', `${new URL(url).origin} gives a key set without keys`, todo)
  } catch (error) {
    return fault('token keys', explainFault(error), todo)
  }
}

async function examineOutside(url: string): Promise<readonly Finding[]> {
  try {
    const reply = await fetch(`${url}/pa/v3/status`, { method: 'POST', signal: AbortSignal.timeout(TIMEOUT_MS) })
    const text = await reply.text()
    return [
      text.includes('"serverTime"')
        ? ok('public URL', `${url} answers as phones need it`)
        : fault(
            'public URL',
            `${url} answers, but not as pawl (HTTP ${reply.status})`,
            'let the balancer send /pa, /api and /app to PAWL_PORT, paths unchanged',
          ),
    ]
  } catch (error) {
    return [
      fault(
        'public URL',
        `${url} does not answer (${reasonOf(error)})`,
        'check its name, the balancer, and whether this machine may reach it',
      ),
    ]
  }
}

/** Examines that the bank's API is not served at the address for phones. */
async function examineExposure(url: string): Promise<Finding> {
  const reply = await fetch(`${url}/admin/applications`, { signal: AbortSignal.timeout(TIMEOUT_MS) }).catch(() => undefined)
  return reply?.status === 401
    ? fault(
        'exposure',
        `the bank's API answers at ${url}`,
        'give it a listener of its own (PAWL_INTERNAL_PORT), or let the balancer pass /pa, /api and /app alone',
      )
    : ok('exposure', `the bank's API does not answer at ${url}`)
}

async function examineTls({ protocol, hostname, port }: URL, { readCertificate, now }: Instruments): Promise<Finding> {
  if (protocol !== 'https:')
    return fault('TLS', 'PAWL_PUBLIC_URL is http: phones would speak in the clear', 'put TLS in front, and name it with https')
  try {
    const { expiresAt: endsAt, chainProblem } = await readCertificate(hostname.replace(/^\[(.*)\]$/, '$1'), Number(port) || 443)
    const says = `the certificate of ${hostname} ends ${endsAt.toISOString()}`
    const end = judgeEnd('TLS', says, 'renew it: after its end no phone connects', { endsAt, now: now() })
    return chainProblem === undefined || end.state === 'fault'
      ? end
      : fault('TLS', `the certificate of ${hostname} does not verify: ${chainProblem}`, 'send the whole chain, for this name')
  } catch (error) {
    return skipped('TLS', `${hostname} shows no certificate (${explainFault(error)})`)
  }
}

/** The reason in an answer. Any program may have written the answer, so only words of limited length are taken. */
function reasonIn(text: string): string {
  const [, reason] = /"reason":"([\w ]{1,200})"/.exec(text) ?? []
  return reason === undefined ? '' : `: ${reason}`
}

const reasonOf = (error: unknown): string => explainFault(error).replace(/^fetch failed: /, '')
