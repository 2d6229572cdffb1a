// pawl serve --phone: serves phones in the network under TLS, and the bank's half on this machine alone.
import { spawn } from 'node:child_process'
import { isIP, isIPv6 } from 'node:net'
import { createInterface } from 'node:readline'
import { fileURLToPath } from 'node:url'
import { systemPlatform } from '../../src/lib/platform.ts'
import type { Answer, Terminal } from '../command.ts'
import { explainFault, Fault, usageFault } from '../fault.ts'
import { readLocalApplication } from '../local/application.ts'
import { drawQrCode } from '../qr-code.ts'
import { keepKeys, KEYS_OF_ALGORITHM } from '../sdk-config.ts'
import { parseCount } from '../time.ts'
import { listAddresses, OWN_NAMES } from './addresses.ts'
import { defaultFolder, readCertificates } from './certificates.ts'
import { openTlsFront, type TlsFront } from './tls-front.ts'
import type { CertificateAndKey } from './x509.ts'

interface Values {
  readonly phoneHost: string | undefined
  readonly phonePort: string | undefined
}

/** The algorithm whose keys fit into a QR code on a terminal. */
const ALGORITHM = 'EC_P384'
const EVERY_INTERFACE = '0.0.0.0'
const PORT_MAX = 65_535

/** Serves until the server ends. Throws a Fault when the settings are not those of development, or when it cannot listen. */
export async function servePhones(values: Values, terminal: Terminal): Promise<Answer> {
  const { env, note } = terminal
  requireDevelopment(env)
  const host = values.phoneHost ?? listAddresses()[0]
  if (host === undefined || isIP(host) === 0)
    throw usageFault(
      host === undefined ? 'this machine is in no network: --phone-host names its address' : '--phone-host is an address',
    )
  const names = [...new Set([...OWN_NAMES, ...listAddresses(), host])]
  const { files, certificate, key } = readCertificates(defaultFolder(env), names, systemPlatform)
  const front = await listen(values, { certificate, key, authority: files.authority, note })
  try {
    const url = `https://${isIPv6(host) ? `[${host}]` : host}:${front.port}`
    const own = { ...env, ...settingsOf(env, url) }
    const introduction = await introduce(
      { ...terminal, env: own },
      { url, authority: files.authority, isEverywhere: values.phoneHost === undefined, port: front.port },
    )
    return { json: { url }, text: '', exitCode: await run(own, front, introduction, terminal) }
  } finally {
    front.close()
  }
}

/** Listens for phones. Throws a Fault when the address or the port cannot be used. */
async function listen(
  { phoneHost = EVERY_INTERFACE, phonePort = '8443' }: Values,
  { authority, note, ...shown }: CertificateAndKey & { readonly authority: string } & Pick<Terminal, 'note'>,
): Promise<TlsFront> {
  const port = parseCount('--phone-port', phonePort)
  if (port > PORT_MAX) throw usageFault(`--phone-port is at most ${PORT_MAX}`)
  const told = new Set<string>()
  const onRefused = (code: string): void => {
    if (!told.has(code)) note(`a caller went away before there was TLS (${code}): does the phone trust ${authority}?`)
    told.add(code)
  }
  try {
    return await openTlsFront({ host: phoneHost, port, ...shown, onRefused })
  } catch (error) {
    throw new Fault(
      'refused',
      `${phoneHost}:${port} cannot be listened on (${explainFault(error)}); see --phone-host and --phone-port`,
    )
  }
}

function requireDevelopment(env: Terminal['env']): void {
  if (env['NODE_ENV'] === 'production') throw usageFault('--phone is for development, and NODE_ENV says production')
  if (env['DATABASE_URL'] || env['DATABASE_URL_FILE'])
    throw usageFault('--phone is for development, with the embedded database: leave DATABASE_URL out')
  const bank = env['PAWL_INTERNAL_HOST']
  if (bank && !LOOPBACK.test(bank))
    throw usageFault(`PAWL_INTERNAL_HOST=${bank}: with --phone the bank's API is for this machine alone`)
}

const LOOPBACK = /^(?:127(?:\.\d{1,3}){3}|::1|localhost)$/

/** Settings that leave the bank's API where commands look for it, and give phones, who come through TLS, a listener of their own. */
const settingsOf = (env: Terminal['env'], url: string): Readonly<Record<string, string>> => ({
  PAWL_HOST: '127.0.0.1',
  PAWL_PORT: '0',
  PAWL_INTERNAL_HOST: env['PAWL_INTERNAL_HOST'] || '127.0.0.1',
  PAWL_INTERNAL_PORT: env['PAWL_INTERNAL_PORT'] || env['PAWL_PORT'] || '8080',
  PAWL_PUBLIC_URL: url,
  PAWL_FIRST_APPLICATION: env['PAWL_FIRST_APPLICATION'] || 'my-app',
})

interface Door {
  readonly url: string
  readonly port: number
  readonly authority: string
  readonly isEverywhere: boolean
}

/** Prints the addresses for phones, and the values that are compiled into the app, beside the server's own text at the start. */
async function introduce(terminal: Pick<Terminal, 'env'>, { url, port, authority, isEverywhere }: Door): Promise<string> {
  const application = await readLocalApplication(terminal)
  const text = application && keepKeys(application.mobileSdkConfig, KEYS_OF_ALGORITHM.get(ALGORITHM) ?? [])
  const others = isEverywhere
    ? `An emulator of Android: https://10.0.2.2:${port}, a simulator of iOS: https://localhost:${port}\n`
    : ''
  return `Phones: ${url}
${others}Whoever reaches that address reaches what phones call, and nothing of the bank's half, which is for this machine alone.
Phones have to trust ${authority}: docs/start/app-developer.md says how.
pawl phone and pawl demo do with NODE_EXTRA_CA_CERTS=${authority}; the demo wants --phones-url ${url} as well.
${
  application === undefined
    ? 'There is no default application: pawl app sdk-config --app ID --qr terminal draws what is compiled into an app.\n'
    : `Compiled into the app ${application.applicationId}, for ${ALGORITHM}:\n${text}\n${drawQrCode(text ?? '')}`
}`
}

const PAWL = fileURLToPath(new URL('../../bin/pawl.mjs', import.meta.url))

/** Runs the server and prints its output, with the introduction before its start text. Resolves with its exit code. */
async function run(env: Terminal['env'], front: TlsFront, introduction: string, { write }: Terminal): Promise<number> {
  const child = spawn(process.execPath, [...process.execArgv, PAWL, 'serve'], { env, stdio: ['ignore', 'pipe', 'inherit'] })
  const ended = new Promise<number>((resolve, reject) => {
    child.once('error', reject)
    child.once('exit', (code) => resolve(code ?? 1))
  })
  process.once('exit', () => child.kill())
  for (const signal of ['SIGTERM', 'SIGINT', 'SIGHUP'] as const) process.on(signal, () => child.kill(signal))
  for await (const line of createInterface({ input: child.stdout })) {
    const [, port] = /^pawl listens on http:\/\/127\.0\.0\.1:(\d+)$/.exec(line) ?? []
    if (port !== undefined) {
      front.serve(Number(port))
      write(introduction)
    }
    write(`${line}\n`)
  }
  return ended
}
