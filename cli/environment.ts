// Finds the address of a server with this environment, as far as its settings give it.

export type Environment = Readonly<Record<string, string | undefined>>

/** The address at which a server with this environment serves phones. */
export const phonesUrl = (env: Environment): string => localUrl(env['PAWL_HOST'], portOf(env['PAWL_PORT']))

/** The address at which a server with this environment serves the bank: that of the internal listener, or that of the phones. */
export function bankUrl(env: Environment): string {
  const port = portOf(env['PAWL_INTERNAL_PORT'])
  return port === undefined
    ? phonesUrl(env)
    : localUrl(env['PAWL_INTERNAL_HOST'], port, env['PAWL_INTERNAL_TLS_CERTIFICATE'] ? 'https' : 'http')
}

/** A port in digits; undefined for other texts, as Kubernetes may put the address of a Service into such a variable (docs/CONFIG.md). */
const portOf = (text: string | undefined): string | undefined => (/^\d+$/.test(text ?? '') ? text : undefined)

/** An address that stands for every interface is reached by the loopback one. */
function localUrl(host: string | undefined, port: string | undefined, scheme: 'http' | 'https' = 'http'): string {
  const isEvery = !host || host === '0.0.0.0' || host === '::'
  const name = isEvery ? '127.0.0.1' : host.includes(':') ? `[${host}]` : host
  return `${scheme}://${name}:${port || '8080'}`
}
