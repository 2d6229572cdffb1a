// The two generations of the protocol lie side by side: the same files with the same names in them, but for what is listed here.
import { readdirSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { expect, test } from 'vitest'
import { v3 } from '../src/protocol/v3/index.ts'
import { v4 } from '../src/protocol/v4/index.ts'

const root = fileURLToPath(new URL('../src/protocol', import.meta.url))
const listFiles = (generation: string) => readdirSync(`${root}/${generation}`).toSorted()
const listNames = async (generation: string, file: string): Promise<string[]> =>
  Object.keys((await import(`${root}/${generation}/${file}`)) as object).toSorted()

/** What v4 adds: an AEAD, shared secrets and key pairs of several algorithms, and factor keys that are replaced. */
const onlyV4Files = ['aead.ts', 'factor-keys.ts', 'key-exchange.ts', 'key-pairs.ts', 'sdk-configuration.ts', 'shared-secret.ts']

const onlyOne: Readonly<Record<string, { readonly v3?: string; readonly v4?: string }>> = {
  'authentication-code.ts': { v4: 'settle' },
  'envelope.ts': {
    v3: 'deriveEnvelopeKey deriveIv deriveSharedInfo1 deriveSharedInfo2Base parseKeyRequest readRequestKeys',
    v4: 'deriveKeyContext',
  },
  'index.ts': { v3: 'v3', v4: 'v4' },
  'key-schedule.ts': {
    v3: 'activationKeyBytes agreeMasterSecret encryptVaultKey importSigningKeys kdfInternal reduce',
    v4:
      'VAULT_KEYS createInitialActivationSecret deriveBiometryKey deriveKdkAuthenticationCode deriveKdkUtility deriveKdkVault ' +
      'deriveKeyMacGetAppTempKey deriveKnowledgeKey derivePossessionKey deriveVaultKey importCodeKey importKdfKey ' +
      'importSharedInfo2Key',
  },
  'status-blob.ts': { v3: 'deriveStatusBlobIv encryptStatusBlob layoutStatusBlobWithoutCounter', v4: 'composeStatusBlob' },
  'versions.ts': { v3: 'VERSIONS capabilitiesOf', v4: 'VERSION' },
}

test('both generations have the same files', () => {
  expect(listFiles('v4').filter((file) => !listFiles('v3').includes(file))).toEqual(onlyV4Files)
  expect(listFiles('v3').filter((file) => !listFiles('v4').includes(file))).toEqual([])
})

test.each(listFiles('v3'))('%s exports the same names in both generations', async (file) => {
  const [ofV3, ofV4] = [await listNames('v3', file), await listNames('v4', file)]
  const expected = onlyOne[file] ?? {}
  expect(ofV3.filter((name) => !ofV4.includes(name)).join(' ')).toBe(expected.v3 ?? '')
  expect(ofV4.filter((name) => !ofV3.includes(name)).join(' ')).toBe(expected.v4 ?? '')
})

test('both are one protocol to the rest of pawl', () => {
  const onlyV3 = ['agreeMasterSecret', 'activationFingerprint', 'encryptStatusBlob', 'encryptVaultKey']
  const shared = Object.keys(v3).filter((name) => !onlyV3.includes(name))
  expect(shared.filter((name) => !(name in v4))).toEqual([])
  expect([v3.activationVersion, v4.activationVersion]).toEqual([3, 4])
})
