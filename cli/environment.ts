// Where a server with this environment listens, as far as its settings tell.

type Environment = Readonly<Record<string, string | undefined>>

/** Where a server with this environment serves phones. */
export const phonesUrl = (env: Environment): string => localUrl(env['PAWL_HOST'], env['PAWL_PORT'])

/** Where a server with this environment serves the bank: a listener of its own, or that of the phones. */
export const bankUrl = (env: Environment): string =>
  env['PAWL_INTERNAL_PORT']
    ? localUrl(env['PAWL_INTERNAL_HOST'], env['PAWL_INTERNAL_PORT'], env['PAWL_INTERNAL_TLS_CERTIFICATE'] ? 'https' : 'http')
    : phonesUrl(env)

/** An address that stands for every interface is reached by the loopback one. */
function localUrl(host: string | undefined, port: string | undefined, scheme: 'http' | 'https' = 'http'): string {
  const isEvery = !host || host === '0.0.0.0' || host === '::'
  const name = isEvery ? '127.0.0.1' : host.includes(':') ? `[${host}]` : host
  return `${scheme}://${name}:${port || '8080'}`
}
