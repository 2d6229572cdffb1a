// What a login by password costs: whoever is refused has waited for the same hashes.
import { expect, test } from 'vitest'
import { importHmacKey } from '../../crypto/hash.ts'
import { PawlError } from '../../lib/errors.ts'
import { systemPlatform } from '../../lib/platform.ts'
import type { CredentialWithPasswords } from '../../storage/credential/credentials.ts'
import type { Login, LoginGate } from './login-gate.ts'
import { createPasswordLogin } from './password-login.ts'
import { createPasswords } from './password.ts'

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
  // Also after this process has seen it.
  await expect(verify(from('192.0.2.1'), RIGHT)).rejects.toThrow(PawlError)
  expect(hashes).toBe(3)
})
