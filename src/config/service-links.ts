// Variables that Kubernetes makes of the Services of a namespace (`enableServiceLinks`). Those of a Service named `pawl`, or `pawl-…`, have names
// like settings.
import { isIP, isIPv6 } from 'node:net'
import type { Environment } from './reader.ts'

/** The names of such variables. A variable is one only if its value fits the address and the ports of its Service. */
export function findServiceLinks(env: Environment): ReadonlySet<string> {
  const names = Object.keys(env).filter((name) => name.startsWith('PAWL_'))
  const services = names.flatMap((name) => findService(env, name) ?? [])
  return new Set(names.filter((name) => services.some((service) => isMadeOf(service, name, env[name] ?? ''))))
}

interface Service {
  /** The name of the Service as its variables begin. */
  readonly prefix: string
  readonly host: string
}

/** The Service that a variable NAME_SERVICE_HOST is of; undefined unless it has an address, and a port in NAME_SERVICE_PORT. */
function findService(env: Environment, name: string): Service | undefined {
  const [, prefix = ''] = /^(PAWL(?:_[A-Z0-9_]+)?)_SERVICE_HOST$/.exec(name) ?? []
  const host = env[name] ?? ''
  return isIP(host) !== 0 && isPort(env[`${prefix}_SERVICE_PORT`]) ? { prefix, host } : undefined
}

function isMadeOf({ prefix, host }: Service, name: string, value: string): boolean {
  if (!name.startsWith(`${prefix}_`)) return false
  const rest = name.slice(prefix.length)
  if (rest === '_SERVICE_HOST') return value === host
  if (/^_SERVICE_PORT(?:_[A-Z0-9_]+)?$/.test(rest)) return isPort(value)
  const start = isIPv6(host) ? `://[${host}]:` : `://${host}:`
  if (rest === '_PORT') {
    const [scheme = '', port] = value.split(start)
    return PROTOCOLS.has(scheme) && isPort(port)
  }
  const [, port, protocol = '', part = ''] = /^_PORT_(\d+)_(TCP|UDP|SCTP)(?:_(PROTO|PORT|ADDR))?$/.exec(rest) ?? []
  if (!isPort(port)) return false
  const scheme = protocol.toLowerCase()
  return value === { '': scheme + start + port, PROTO: scheme, PORT: port, ADDR: host }[part]
}

const PROTOCOLS: ReadonlySet<string> = new Set(['tcp', 'udp', 'sctp'])

const isPort = (text: string | undefined): boolean => text !== undefined && /^[1-9]\d{0,4}$/.test(text) && Number(text) <= 65_535
