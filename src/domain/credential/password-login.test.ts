// Tests that every refused login by password waits for the same hashes, and that logins notice changes of the credential.
import { expect, test } from 'vitest'
import { importHmacKey } from '../../crypto/hash.ts'
import { PawlError } from '../../lib/errors.ts'
import { systemPlatform } from '../../lib/platform.ts'
import { createEvents } from '../../log/events.ts'
import { createLog } from '../../log/log.ts'
import type { CredentialWithPasswords } from '../../storage/credential/credentials.ts'
import { createLoginGate, type Login, type LoginGate } from './login-gate.ts'
import { createPasswordLogin, REMEMBERED_MS } from './password-login.ts'
import { createPasswords, type Passwords } from './password.ts'

const passwords = createPasswords(importHmacKey(Buffer.alloc(32, 1)))
const salt = Buffer.alloc(16, 2)
const RIGHT = 'a generated password of 256 bits'

test('a right generated password from an address that is not admitted costs the hash of a wrong one', async () => {
  const passwordHash = Buffer.from(await passwords.hash('generated', RIGHT, salt, async (work) => work()))
  const credential: CredentialWithPasswords = {
    username: 'bound',
    role: 'integration',
    applicationId: 'app',
    isDisabled: false,
    expiresAt: null,
    allowedAddresses: ['10.0.0.0/8'],
    certificates: [],
    rights: [],
    salt,
    mac: null,
    passwords: [{ passwordId: 'first', scheme: 'generated', passwordHash, expiresAt: null }],
  }
  let hashes = 0
  const gate: LoginGate = {
    enter: () => undefined,
    check: (_login, _shown, _now, check) =>
      check(async (work) => {
        hashes += 1
        return work()
      }),
    pass: () => undefined,
    fail: () => new PawlError('CREDENTIALS_INVALID'),
    ownLane: async (work) => work(),
  }
  const { verify } = createPasswordLogin({ platform: systemPlatform, findAuthentic: async () => credential }, gate, passwords)
  const from = (source: string): Login => ({ username: 'bound', source, onGone: () => () => undefined })
  await expect(verify(from('192.0.2.1'), 'a wrong password')).rejects.toThrow(PawlError)
  expect(hashes).toBe(1)
  await expect(verify(from('192.0.2.1'), RIGHT)).rejects.toThrow(PawlError)
  expect(hashes).toBe(2)
  expect(await verify(from('10.1.2.3'), RIGHT)).toMatchObject({ username: 'bound', passwordId: 'first' })
  expect(hashes).toBe(2)
  // The process remembers the password now, and still computes the hash.
  await expect(verify(from('192.0.2.1'), RIGHT)).rejects.toThrow(PawlError)
  expect(hashes).toBe(3)
})

/** A credential with one password, whose hash is its text. Its MAC is different for each password. */
const credentialOf = (password: string): CredentialWithPasswords => ({
  username: 'bank',
  role: 'integration',
  applicationId: 'app',
  isDisabled: false,
  expiresAt: null,
  allowedAddresses: [],
  certificates: [],
  rights: [],
  salt,
  mac: Buffer.from(password),
  passwords: [{ passwordId: password, scheme: 'chosen', passwordHash: Buffer.from(password), expiresAt: null }],
})
const LOGIN: Login = { username: 'bank', source: '192.0.2.1', onGone: () => () => undefined }

/** Creates logins whose slow hash ends when `hashed` is called. `change` replaces the credential as an administrator of this process does. */
function slowLogins() {
  let stored: CredentialWithPasswords | undefined = credentialOf('old')
  let now = 1_000_000
  const hash = Promise.withResolvers<void>()
  let hashes = 0
  const slow: Passwords = {
    ...passwords,
    findMatch: async (credential, password) => {
      hashes += 1
      await hash.promise
      return credential?.passwords.find(({ passwordId }) => passwordId === password)
    },
  }
  const platform = { ...systemPlatform, now: () => now }
  const gate = createLoginGate(createEvents(createLog('silent', { write: () => undefined })), platform.monotonic, 20)
  const logins = createPasswordLogin({ platform, findAuthentic: async () => stored }, gate, slow)
  return {
    verify: (password: string) => logins.verify(LOGIN, password),
    hashing: (count: number) => expect.poll(() => hashes).toBeGreaterThanOrEqual(count),
    hashed: hash.resolve,
    change: (next: CredentialWithPasswords | undefined) => {
      stored = next
      logins.forget()
    },
    changeElsewhere: (next: CredentialWithPasswords | undefined, afterMs: number) => {
      stored = next
      now += afterMs
    },
  }
}

test('a password that was replaced is right for nobody who comes later, though a check of it still runs', async () => {
  const { verify, hashing, hashed, change } = slowLogins()
  const early = expect(verify('old')).rejects.toMatchObject({ code: 'CREDENTIALS_INVALID' })
  await hashing(1)
  change(credentialOf('new'))
  const late = expect(verify('old')).rejects.toMatchObject({ code: 'CREDENTIALS_INVALID' })
  const right = verify('new')
  await hashing(2)
  hashed()
  await Promise.all([early, late])
  expect(await right).toMatchObject({ passwordId: 'new' })
  await expect(verify('old')).rejects.toMatchObject({ code: 'CREDENTIALS_INVALID' })
})

test('who waited for a hash longer than a credential is remembered is judged by the credential of now', async () => {
  const { verify, hashing, hashed, changeElsewhere } = slowLogins()
  const one = expect(verify('old')).rejects.toMatchObject({ code: 'CREDENTIALS_INVALID' })
  await hashing(1)
  changeElsewhere(undefined, REMEMBERED_MS)
  hashed()
  await one
})
