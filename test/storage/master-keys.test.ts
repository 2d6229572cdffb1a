// Master keys of applications (v4 §3.2): made with the application, or when one that was made before protocol 4.0 first needs them.
import { sign, verify } from 'node:crypto'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { importMlDsaPublicKey, mlDsaSign, mlDsaVerify } from '../../src/crypto/mldsa.ts'
import { publicKeyFromPoint } from '../../src/crypto/key.ts'
import { createApplication } from '../../src/domain/application/application.ts'
import { findAllowedAlgorithms, findSigningMasterKeys, readMasterPublicKeys } from '../../src/domain/application/master-keys.ts'
import { inTransaction } from '../../src/storage/database/database.ts'
import { startTestServer, type TestServer } from '../helpers/app.ts'

let server: TestServer
beforeAll(async () => {
  server = await startTestServer()
})
afterAll(() => server.close())

const create = (id: string): Promise<void> =>
  inTransaction(server.context.db, (tx) => createApplication({ ...server.context, db: tx }, id))

const createOldApplication = async (id: string): Promise<void> => {
  await create(id)
  await server.context.db
    .deleteFrom('master_key_pair')
    .where('application_id', '=', id)
    .where('algorithm', '<>', 'EC_P256')
    .execute()
}
const listStored = async (id: string) =>
  server.context.db.selectFrom('master_key_pair').selectAll().where('application_id', '=', id).orderBy('algorithm').execute()

test('an application is made with a key pair of each kind, private halves sealed', async () => {
  await create('new')
  const stored = await listStored('new')
  expect(stored.map((pair) => [pair.algorithm, pair.public_key.length])).toEqual([
    ['EC_P256', 65],
    ['EC_P384', 97],
    ['ML_DSA_65', 1974],
    ['ML_DSA_87', 2614],
  ])
  const keys = await findSigningMasterKeys(server.context, 'new', 'EC_P384_ML_L3')
  const seed = keys.mldsa?.export({ format: 'raw-seed' }) as Buffer
  expect(seed).toHaveLength(32)
  for (const { private_key: sealed } of stored) expect(sealed.includes(seed)).toBe(false)
})

test.each(['EC_P256', 'EC_P384', 'EC_P384_ML_L3', 'EC_P384_ML_L5'] as const)(
  'what signs for %s verifies under the public halves',
  async (algorithm) => {
    const { ecdsa, mldsa } = await findSigningMasterKeys(server.context, 'new', algorithm)
    const publicKeys = await readMasterPublicKeys(server.context, 'new')
    const message = Buffer.from('text')
    const [curve, hash, point] =
      algorithm === 'EC_P256'
        ? (['P-256', 'sha256', publicKeys.EC_P256] as const)
        : (['P-384', 'sha384', publicKeys.EC_P384] as const)
    const key = publicKeyFromPoint(curve, point)
    expect(key && verify(hash, message, key, sign(hash, message, ecdsa))).toBe(true)
    expect(mldsa !== undefined).toBe(algorithm.includes('ML'))
    if (mldsa === undefined) return
    const [set, spki] =
      algorithm === 'EC_P384_ML_L3'
        ? (['ML-DSA-65', publicKeys.ML_DSA_65] as const)
        : (['ML-DSA-87', publicKeys.ML_DSA_87] as const)
    const second = importMlDsaPublicKey(set, spki)
    expect(second && mlDsaVerify(second, message, mlDsaSign(mldsa, message))).toBe(true)
  },
)

test('an application made before gets its keys when they are first needed, and keeps its P-256 pair', async () => {
  await createOldApplication('old')
  const [before] = await listStored('old')
  const { mldsa } = await findSigningMasterKeys(server.context, 'old', 'EC_P384_ML_L5')
  expect(mldsa?.asymmetricKeyType).toBe('ml-dsa-87')
  expect((await listStored('old')).map(({ algorithm }) => algorithm)).toEqual(['EC_P256', 'EC_P384', 'ML_DSA_87'])
  await readMasterPublicKeys(server.context, 'old')
  const after = await listStored('old')
  expect(after).toHaveLength(4)
  expect(after[0]).toEqual(before)
})

test('everybody who needs them first at the same time gets the same keys', async () => {
  for (let round = 0; round < 5; round += 1) {
    const id = `raced-${round}`
    await createOldApplication(id)
    const algorithms = ['EC_P384_ML_L5', 'EC_P384', 'EC_P384_ML_L3', 'EC_P384_ML_L5'] as const
    const keys = await Promise.all(algorithms.map((algorithm) => findSigningMasterKeys(server.context, id, algorithm)))
    const exported = new Set(keys.map(({ ecdsa }) => ecdsa.export({ format: 'der', type: 'pkcs8' }).toString('hex')))
    expect(exported.size).toBe(1)
    expect(keys[0]?.mldsa?.export({ format: 'raw-seed' })).toEqual(keys[3]?.mldsa?.export({ format: 'raw-seed' }))
    expect(await listStored(id)).toHaveLength(4)
  }
})

test('an application admits protocol 3 and every algorithm of 4.0; an unknown one admits nothing', async () => {
  expect(await findAllowedAlgorithms(server.context.db, 'new')).toEqual(['EC_P256', 'EC_P384', 'EC_P384_ML_L3', 'EC_P384_ML_L5'])
  expect(await findAllowedAlgorithms(server.context.db, 'nobody')).toEqual([])
})
