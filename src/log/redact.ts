// Removes secrets from a line of the log, wherever in its fields they are.

/** In place of a secret. */
const CENSORED = '[secret]'

/**
 * The same fields, with every member of a secret's name censored in plain objects and arrays, ten levels deep. What holds none is not copied.
 * Objects of other classes stay as they are: the log writes them by their own serializers.
 */
export function redact<Fields extends object>(fields: Fields): Fields {
  return redactWithin(fields, 0) as Fields
}

function redactWithin(value: unknown, depth: number): unknown {
  if (typeof value !== 'object' || value === null || depth > DEPTH_MAX) return value
  if (Array.isArray(value)) return redactItems(value, depth)
  return isPlain(value) ? redactMembers(value as Readonly<Record<string, unknown>>, depth) : value
}

function redactItems(items: readonly unknown[], depth: number): readonly unknown[] {
  const redacted = items.map((item) => redactWithin(item, depth + 1))
  return redacted.some((item, i) => item !== items[i]) ? redacted : items
}

function redactMembers(members: Readonly<Record<string, unknown>>, depth: number): Readonly<Record<string, unknown>> {
  let copy: Record<string, unknown> | undefined
  for (const name in members) {
    const value = members[name]
    const redacted = SECRET_NAMES.has(name) ? CENSORED : redactWithin(value, depth + 1)
    if (redacted === value) continue
    copy ??= { ...members }
    copy[name] = redacted
  }
  return copy ?? members
}

function isPlain(value: object): boolean {
  const prototype: unknown = Object.getPrototypeOf(value)
  return prototype === Object.prototype || prototype === null
}

// Fields refer to themselves nowhere; a line that does is cut by the serializer of the log.
const DEPTH_MAX = 10

const SECRET_NAMES: ReadonlySet<string> = new Set([
  // Request headers that carry credentials or codes. Encryption headers name keys and an activation, and stay readable.
  'authorization',
  'proxy-authorization',
  'cookie',
  'set-cookie',
  'x-powerauth-authorization',
  'x-powerauth-token',
  'x-svc-authorization',
  'x-svc-token',
  // Members of pawl's own records and of request bodies.
  'password',
  'adminPassword',
  'masterKey',
  'masterKeys',
  'vaultToken',
  'databaseUrl',
  'connectionString',
  'applicationSecret',
  'appSecret',
  'tokenSecret',
  'sharedSecret',
  'secret',
  'privateKey',
  'keyTransport',
  'activationCode',
  'activationOtp',
  'otp',
])
