// The SQL of every storage function, so that it is reviewed as SQL.
import { readdirSync, readFileSync } from 'node:fs'
import {
  type DatabaseConnection,
  DummyDriver,
  Kysely,
  PostgresAdapter,
  PostgresIntrospector,
  PostgresQueryCompiler,
} from 'kysely'
import { expect, test } from 'vitest'
import * as activationFind from '../../src/storage/activation/find.ts'
import * as activationDeviceSlot from '../../src/storage/activation/device-slot.ts'
import * as activationAuthentication from '../../src/storage/request/authentication.ts'
import * as activationChange from '../../src/storage/activation/change.ts'
import * as activationKeys from '../../src/storage/activation/keys.ts'
import * as activationInsert from '../../src/storage/activation/insert.ts'
import * as activationImport from '../../src/storage/activation/import.ts'
import * as activationFence from '../../src/storage/activation/fence.ts'
import * as activationExpiry from '../../src/storage/activation/expiry.ts'
import * as doorEnvelopes from '../../src/storage/request/door-envelopes.ts'
import * as doorToken from '../../src/storage/request/door-token.ts'
import * as doorVerdicts from '../../src/storage/request/door-verdicts.ts'
import * as offlineChallenges from '../../src/storage/request/offline-challenges.ts'
import * as lookup from '../../src/storage/request/lookup.ts'
import * as activationUpgrade from '../../src/storage/request/upgrade.ts'
import * as activationSearch from '../../src/storage/activation/search.ts'
import * as activationCommit from '../../src/storage/activation/commit.ts'
import * as activationHistory from '../../src/storage/activation/history.ts'
import * as applications from '../../src/storage/application/applications.ts'
import * as adminEvents from '../../src/storage/credential/admin-events.ts'
import * as audit from '../../src/storage/audit/audit.ts'
import * as auditChain from '../../src/storage/audit/chain.ts'
import * as auditPartitions from '../../src/storage/audit/partitions.ts'
import * as auditRows from '../../src/storage/audit/rows.ts'
import * as auditTakeover from '../../src/storage/audit/takeover.ts'
import * as auditErasure from '../../src/storage/audit/erasure.ts'
import * as configItems from '../../src/storage/application/config-items.ts'
import * as oidcProviders from '../../src/storage/application/oidc-providers.ts'
import * as consoleSessions from '../../src/storage/credential/console-sessions.ts'
import * as credentials from '../../src/storage/credential/credentials.ts'
import type { Db, Pool, Tx } from '../../src/storage/database/database.ts'
import type { Schema } from '../../src/storage/database/schema.ts'
import * as templates from '../../src/storage/template/templates.ts'
import * as idempotencyKeys from '../../src/storage/operation/idempotency-keys.ts'
import * as inboxMessages from '../../src/storage/user/inbox-messages.ts'
import * as operations from '../../src/storage/operation/operations.ts'
import * as operationTransitions from '../../src/storage/operation/transitions.ts'
import * as pushRegistrations from '../../src/storage/token/push-registrations.ts'
import * as pushProviders from '../../src/storage/webhook/push-providers.ts'
import * as retention from '../../src/storage/retention.ts'
import * as recordBinding from '../../src/storage/secrets/record-binding.ts'
import * as sealedColumns from '../../src/storage/secrets/sealed-columns.ts'
import * as failureCounts from '../../src/storage/credential/failure-counts.ts'
import * as temporaryKeys from '../../src/storage/application/temporary-keys.ts'
import * as tokenReads from '../../src/storage/token/reads.ts'
import * as tokens from '../../src/storage/token/tokens.ts'
import * as uniqueValues from '../../src/storage/activation/unique-values.ts'
import * as vacuum from '../../src/storage/vacuum.ts'
import * as webhookDeliveries from '../../src/storage/webhook/deliveries.ts'
import * as webhooks from '../../src/storage/webhook/webhooks.ts'
import * as vitalSigns from '../../src/storage/vital-signs.ts'
import * as userClaims from '../../src/storage/user/claims.ts'
import * as userData from '../../src/storage/user/data.ts'
import * as userErasure from '../../src/storage/user/erasure.ts'
import * as pinning from '../../src/storage/pinning/pinning.ts'
import * as versionRules from '../../src/storage/pinning/version-rules.ts'
import * as wrappedKeys from '../../src/storage/secrets/wrapped-keys.ts'

const PAIRED = { table: 'user_claims', key: ['application_id', 'user_id'], columns: ['claims'] } as const
const at = new Date(0)
const bytes = new Uint8Array(1)
const auditEvent = { applicationId: 'a', userId: 'u', activationId: 'x', eventType: 't', eventData: 'd', occurredAt: at }
const ofUsers = {
  applicationId: 'a',
  userIds: ['u', 'v'],
  states: [],
  flags: [],
  usedBefore: null,
  usedAfter: null,
  at,
  limit: 10,
  offset: 0,
}
const outcome = {
  activationId: 'x',
  rowVersion: 1,
  from: 'ACTIVE' as const,
  counter: 1,
  ctrData: bytes,
  masterSecret: null,
  failedAttempts: 0,
  blockedReason: null,
  blockExpiresAt: null,
  blocksInRow: 0,
  acceptedFor: null,
  highestVersion: null,
  at,
}
const credential = { username: 'n', role: 'admin', applicationId: null, salt: bytes, expiresAt: null, createdAt: at } as const
const password = { passwordId: 'p', salt: bytes, scheme: 'generated', passwordHash: bytes, createdAt: at } as const
const configItem = { scope: 'ACTIVATION', key: 'k', json: '{}' } as const
const adminEvent = { username: 'n', action: 'a', target: 't', before: null, after: '{}', occurredAt: at }
const NO_FILTER = { username: undefined, action: undefined, from: undefined, to: undefined, beforeSequence: undefined }
const temporaryKey = { temporaryKeyId: 't', applicationKey: 'k', activationId: null, privateKey: bytes, expiresAt: at }
const OWNERS = ['u', 'v'].map((userId) => ({ applicationId: 'a', userId }))
const place = { position: 1, seal: bytes }
const chain = { name: 'c', start: place, head: place, authentication: bytes }
const placed = {
  position: 1,
  seal: bytes,
  chainId: 1,
  row: { sequence: 1, activationId: 'x', chain: 'c', fields: ['a', 'u', 'x', 't', 'd', '00'], userKey: bytes, verifiedBy: null },
} as const
const doorVerdict = { keyHash: bytes, answer: '{}', expiresAt: at, mac: bytes }
const person = { userId: 'u', phones: ['x'], actedFor: ['y'] }
const change = { activationId: 'x', rowVersion: 1, from: 'ACTIVE', to: 'BLOCKED', reason: 'r', externalUserId: null, at } as const
const exchange = {
  activationId: 'x',
  rowVersion: 1,
  protocolVersion: 3,
  highestVersion: '3.3',
  algorithm: null,
  isConfirmationPending: false,
  isBiometryEnabled: null,
  serverPublicKey: bytes,
  serverPrivateKey: bytes,
  devicePublicKey: bytes,
  activationFingerprint: '1',
  masterSecret: bytes,
  ctrData: bytes,
  name: null,
  platform: 'ios',
  deviceInfo: null,
  extras: null,
  externalId: null,
  at,
}
const imported = {
  ...exchange,
  applicationId: 'a',
  userId: 'u',
  state: 'ACTIVE',
  activationCodeHash: bytes,
  counter: 1,
  failedAttempts: 0,
  maxFailedAttempts: 5,
  blockedReason: null,
  createdAt: at,
  expiresAt: at,
  lastUsedAt: null,
  flags: '',
  commitPhase: 'ON_COMMIT',
  eventType: 't',
  eventData: 'd',
} as const
const committedExchange = { exchange: { ...exchange, to: 'ACTIVE' }, audits: [auditEvent, auditEvent], values: [] } as const
const upgrade = {
  algorithm: 'EC_P384',
  devicePublicKey: bytes,
  serverPublicKey: bytes,
  serverPrivateKey: bytes,
  masterSecret: bytes,
  ctrData: bytes,
  activationFingerprint: '1',
  isBiometryEnabled: true,
} as const
const lease = { leaseId: 'l', at, until: at }
const webhook = {
  webhookId: 'w',
  applicationId: 'a',
  name: 'n',
  kind: 'OPERATION',
  url: 'u',
  attributes: [],
  secret: bytes,
  basicCredentials: null,
  basicMac: null,
  isEnabled: true,
  createdAt: at,
} as const
const search = {
  applicationId: 'a',
  userId: null,
  userIdPrefix: null,
  state: null,
  protocolVersion: null,
  after: null,
  at,
  limit: 51,
} as const
const activation = {
  activationId: 'x',
  applicationId: 'a',
  userId: 'u',
  activationCodeHash: bytes,
  activationQrCode: null,
  serverPublicKey: bytes,
  serverPrivateKey: bytes,
  maxFailedAttempts: 5,
  createdAt: at,
  expiresAt: at,
  commitPhase: 'ON_COMMIT',
  otpHash: null,
  flags: '',
  parentActivationId: null,
  replacesParent: false,
} as const

const templateContent = {
  templateName: 'n',
  operationType: 't',
  dataTemplate: 'A2',
  signatureTypes: 'possession',
  maxFailureCount: 5,
  expirationSeconds: 300,
  riskFlags: '',
  isProximityCheckEnabled: false,
  activationFlag: null,
  texts: '{}',
} as const

const operation = {
  operationId: 'o',
  applicationId: 'a',
  userId: 'u',
  externalId: null,
  templateRevisionId: 'r',
  templateName: 'n',
  operationType: 't',
  language: 'en',
  parameters: {},
  data: 'A2',
  signatureTypes: ['possession'],
  maxFailureCount: 5,
  riskFlags: '',
  activationFlag: null,
  activationId: null,
  proximitySeed: null,
  createdAt: at,
  expiresAt: at,
} as const
const owner = { applicationId: 'a', userId: 'u' }

/** `found` is a database that answers every query with a row; the others give none. */
const calls: Record<string, Record<string, (db: Pool, tx: Tx, found: Pool) => Promise<unknown>>> = {
  'request/authentication': {
    storeAuthentication: (db) => activationAuthentication.storeAuthentication(db, { ...outcome, state: 'ACTIVE' }, auditEvent),
    storeAuthenticationAndLock: (_db, tx) =>
      activationAuthentication.storeAuthenticationAndLock(tx, { ...outcome, state: 'ACTIVE' }, auditEvent, 'o'),
    'createAuthenticationStore for several at once': async (db) => {
      const store = activationAuthentication.createAuthenticationStore(db, { counterWentBack: () => undefined })
      await Promise.all(['x', 'y', 'z'].map((id) => store.find({ applicationKey: 'k', activationId: id, at }).catch(ignoreNoRow)))
      const proofs = { applicationKey: 'k', activationId: 'x', at, temporaryKeyId: 't', tokenId: 'i' }
      await store.findProofs({ ...proofs, envelopeValue: bytes, tokenValue: null }).catch(ignoreNoRow)
      const outcomes = ['x', 'y', 'z'].map((activationId) => ({ ...outcome, activationId, state: 'ACTIVE' as const }))
      await Promise.all(outcomes.map((one) => store.store(one, auditEvent)))
    },
  },
  'activation/find': {
    findActivation: (db) => activationFind.findActivation(db, 'x', at),
    findRegistrations: (db) => activationFind.findRegistrations(db, 'a', 'u', at),
    'findRegistrations of one': (db) => activationFind.findRegistrations(db, 'a', 'u', at, 'x'),
    'createStatusReader for one and for several': async (db) => {
      const read = activationFind.createStatusReader(db)
      await read({ activationId: 'x', at }).catch(ignoreNoRow)
      await Promise.all(['x', 'y'].map((activationId) => read({ activationId, at })))
    },
    findDeviceKeys: (db) => activationFind.findDeviceKeys(db, { applicationId: 'a', activationId: 'x', at }),
  },
  'activation/device-slot': {
    lockMultiDevice: (_db, tx) => activationDeviceSlot.lockMultiDevice(tx, 'a').catch(ignoreNoRow),
    findUserOfSeveral: (db) => activationDeviceSlot.findUserOfSeveral(db, 'a'),
    setMultiDevice: (_db, tx) => activationDeviceSlot.setMultiDevice(tx, 'a', true),
    emptySlots: (_db, tx) => activationDeviceSlot.emptySlots(tx, 'a', '', 5),
    lockNewRegistrations: (_db, tx) => activationDeviceSlot.lockNewRegistrations(tx, { applicationId: 'a', userId: 'u' }),
  },
  'activation/change': {
    changeState: (db) => activationChange.changeState(db, change, auditEvent),
    'changeState that removes': (db) => activationChange.changeState(db, { ...change, to: 'REMOVED' }, auditEvent),
    renameActivation: (db) => activationChange.renameActivation(db, 'x', 'n', at),
    'renameActivation by a back end': (db) =>
      activationChange.renameActivation(db, 'x', 'n', at, { username: 'n', externalUserId: 'e' }),
    findActivationFlags: (db) => activationChange.findActivationFlags(db, 'x'),
    lockActivationFlags: (_db, tx) => activationChange.lockActivationFlags(tx, 'x'),
    setActivationFlags: (db) => activationChange.setActivationFlags(db, 'x', ['A', 'B'], at, 'admin'),
  },
  'activation/keys': {
    'createExchangeBasisReader for one and for several': async (db) => {
      const read = activationKeys.createExchangeBasisReader(db)
      const names = { applicationId: 'a', codeHash: bytes, value: bytes, secondValue: null, at }
      await read(names).catch(ignoreNoRow)
      await Promise.all([read(names), read(names)])
    },
    storeKeyExchange: (db) =>
      activationKeys.storeKeyExchange(db, { exchange: { ...exchange, to: 'PENDING_COMMIT' }, audits: [auditEvent], values: [] }),
    'storeKeyExchange that commits': (db) => activationKeys.storeKeyExchange(db, committedExchange),
    'storeKeyExchange for several at once': (db) =>
      Promise.all(
        ['x', 'y'].map((activationId) => {
          const one = { ...exchange, activationId, to: 'PENDING_COMMIT' } as const
          return activationKeys.storeKeyExchange(db, { exchange: one, audits: [auditEvent], values: [] })
        }),
      ),
    storeKeyExchangeOfChild: (db) =>
      activationKeys.storeKeyExchangeOfChild(db, committedExchange, {
        parentActivationId: 'y',
        isReplaced: true,
        eventData: '{}',
      }),
    confirmActivation: (_db, tx) => activationKeys.confirmActivation(tx, 'x', true),
    storeFactorKeys: (db) =>
      activationKeys.storeFactorKeys(db, {
        activationId: 'x',
        from: bytes,
        to: bytes,
        isBiometryEnabled: true,
        use: { valueHash: bytes, expiresAt: at },
      }),
    findFactorKeys: (db) => activationKeys.findFactorKeys(db, 'x'),
  },
  'activation/insert': {
    findRegistrationBasis: (db) => activationInsert.findRegistrationBasis(db, { applicationId: 'a', userId: 'u' }),
    'findRegistrationBasis for several at once': (db) =>
      Promise.all(OWNERS.map((owner) => activationInsert.findRegistrationBasis(db, owner))),
    insertActivation: (db) => activationInsert.insertActivation(db, { row: activation, audit: auditEvent }),
  },
  'activation/import': {
    findExistingActivations: (db) => activationImport.findExistingActivations(db, ['x']),
    findExistingTokens: (db) => activationImport.findExistingTokens(db, ['t']),
    lockImport: (_db, tx) => activationImport.lockImport(tx),
    listLiveActivations: (db) => activationImport.listLiveActivations(db, ['u']),
    insertImportedActivations: (_db, tx) => activationImport.insertImportedActivations(tx, [imported]),
    insertImportedHistory: (_db, tx) =>
      activationImport.insertImportedHistory(tx, [
        { activationId: 'x', fromState: null, toState: 'CREATED', reason: null, externalUserId: null, occurredAt: at },
      ]),
    insertImportedTokens: (_db, tx) =>
      activationImport.insertImportedTokens(tx, [
        { tokenId: 't', activationId: 'x', factors: 'POSSESSION', tokenSecret: bytes, createdAt: at },
      ]),
  },
  'activation/fence': {
    findUnfenced: (db) => activationFence.findUnfenced(db, at, 'x', 200),
    storeFenced: (db) =>
      activationFence.storeFenced(db, [
        { activationId: 'x', rowVersion: 1, counter: 20, ctrData: bytes, blocks: true, eventData: '{}', at },
      ]),
    fenceTickets: (db) => activationFence.fenceTickets(db),
    removeWaiting: (db) => activationFence.removeWaiting(db, at, at, 200),
    isAnyWaiting: (db) => activationFence.isAnyWaiting(db, at),
  },
  'activation/expiry': {
    removeExpiredActivations: (db) => activationExpiry.removeExpiredActivations(db, at, 500),
    endTemporaryBlocks: (db) => activationExpiry.endTemporaryBlocks(db, at, 500),
    endTemporaryBlock: (db) => activationExpiry.endTemporaryBlock(db, 'x', at),
  },
  'request/door-envelopes': {
    findDoorEnvelopes: (db) =>
      doorEnvelopes.findDoorEnvelopes(db, [
        { applicationKey: 'k', activationId: 'x', at, verdictKey: null, temporaryKeyId: 't', envelopeValue: bytes },
      ]),
    recordOpening: (db) =>
      doorEnvelopes.recordOpening(db, {
        uses: [{ valueHash: bytes, expiresAt: at }],
        kept: doorVerdict,
        audit: { ...auditEvent, verifiedBy: 'n' },
      }),
    'recordOpening of an application': (db) =>
      doorEnvelopes.recordOpening(db, {
        uses: [],
        kept: undefined,
        audit: { ...auditEvent, activationId: '', verifiedBy: 'n' },
      }),
    takeTicket: (db) =>
      doorEnvelopes.takeTicket(db, { ticketId: bytes, plaintextHash: bytes, openedAt: at, expiresAt: new Date(4e12) }),
    deleteEndedAnswers: (db) => doorEnvelopes.deleteEndedAnswers(db, at, 1000),
  },
  'request/lookup': {
    findParties: (db) => lookup.findParties(db, [{ applicationKey: 'k', activationId: 'x', at }]),
    findProofs: (db) =>
      lookup.findProofs(db, [
        { applicationKey: 'k', activationId: 'x', at, temporaryKeyId: 't', envelopeValue: bytes, tokenId: 'i', tokenValue: null },
      ]),
    'findProofs for several at once': (db) =>
      lookup.findProofs(
        db,
        [bytes, null].map((envelopeValue) => ({
          applicationKey: 'k',
          activationId: 'x',
          at,
          temporaryKeyId: 't',
          envelopeValue,
          tokenId: 'i',
          tokenValue: bytes,
        })),
      ),
    findDoorParties: (db) => lookup.findDoorParties(db, [{ applicationKey: 'k', activationId: 'x', at, verdictKey: null }]),
    'findDoorParties of several at once': (db) =>
      lookup.findDoorParties(db, [
        { applicationKey: 'k', activationId: 'x', at, verdictKey: null },
        { applicationKey: 'k', activationId: 'y', at, verdictKey: bytes },
      ]),
  },
  'request/door-token': {
    findDoorToken: (db) =>
      doorToken.findDoorToken(db, { tokenId: 't', at, tokenValue: bytes, verdictKey: null }).catch(ignoreNoRow),
    useTokenAtDoor: (db) => doorToken.useTokenAtDoor(db, 'x', { valueHash: bytes, expiresAt: at }, doorVerdict),
  },
  'request/door-verdicts': {
    deleteExpiredVerdict: (db) => doorVerdicts.deleteExpiredVerdict(db, bytes, at),
    deleteExpiredVerdicts: (db) => doorVerdicts.deleteExpiredVerdicts(db, at, 1000),
  },
  'request/offline-challenges': {
    insertChallenge: (db) =>
      offlineChallenges.insertChallenge(db, {
        challengeId: 'c',
        applicationId: 'a',
        activationId: null,
        terms: bytes,
        expiresAt: at,
      }),
    findChallenge: (db) =>
      offlineChallenges
        .findChallenge(db, { challengeId: 'c', applicationId: 'a', usedHash: bytes, verdictKey: bytes, asked: bytes, at })
        .catch(ignoreNoRow),
    takeAttempt: (db) => offlineChallenges.takeAttempt(db, 'c', bytes),
    deleteExpiredChallenges: (db) => offlineChallenges.deleteExpiredChallenges(db, at, 1000),
  },
  'request/upgrade': {
    storeUpgrade: (db) => activationUpgrade.storeUpgrade(db, 'x', 1, upgrade),
    findUpgradedParties: (db) =>
      activationUpgrade.findUpgradedParties(db, { applicationKey: 'k', activationId: 'x', at }).catch(() => undefined),
    findStatusProofs: (db) =>
      activationUpgrade.findStatusProofs(db, [
        { applicationKey: 'k', activationId: 'x', at, temporaryKeyId: 't', envelopeValue: bytes, tokenId: '', tokenValue: null },
      ]),
    completeUpgrade: (_db, tx) => activationUpgrade.completeUpgrade(tx, 'x', at),
  },
  'activation/search': {
    hasActivation: (db) => activationSearch.hasActivation(db, 'a', 'u'),
    listRegistrations: (db) => activationSearch.listRegistrations(db, search),
    'listRegistrations of a user in a state after another': (db) =>
      activationSearch.listRegistrations(db, {
        ...search,
        userId: 'u',
        state: 'ACTIVE',
        after: { createdAt: at, activationId: 'x' },
      }),
    'listRegistrations of a beginning': (db) => activationSearch.listRegistrations(db, { ...search, userIdPrefix: 'u' }),
    listRegistrationsWith: (db) => activationSearch.listRegistrationsWith(db, search, 'u'),
    searchRegistrationDetails: (db) => activationSearch.searchRegistrationDetails(db, { ...search, flag: 'A', usedBefore: at }),
    findRegistrationDetail: (db) => activationSearch.findRegistrationDetail(db, 'a', 'x', at),
    listRegistrationDetails: (db) => activationSearch.listRegistrationDetails(db, ofUsers),
    'listRegistrationDetails with everything': (db) =>
      activationSearch.listRegistrationDetails(db, {
        ...ofUsers,
        states: ['ACTIVE'],
        flags: ['A', 'B'],
        usedBefore: at,
        usedAfter: at,
      }),
  },
  'activation/commit': {
    findRegistrationToCommit: (db) => activationCommit.findRegistrationToCommit(db, { applicationId: 'a', userId: 'u' }),
    'findRegistrationToCommit for several at once': (db) =>
      Promise.all(OWNERS.map((owner) => activationCommit.findRegistrationToCommit(db, owner))),
    setCommitOtp: (db) =>
      activationCommit.setCommitOtp(db, { activationId: 'x', from: ['CREATED', 'PENDING_COMMIT'] }, bytes, at, {
        username: 'n',
        externalUserId: 'e',
      }),
    storeOtpFailure: (db) =>
      activationCommit.storeOtpFailure(
        db,
        { activationId: 'x', rowVersion: 1, from: 'CREATED', to: 'REMOVED', failedAttempts: 5, reason: 'r', at },
        auditEvent,
      ),
  },
  'activation/history': {
    listActivationHistory: (db) => activationHistory.listActivationHistory(db, 'x', { limit: 100 }),
    'listActivationHistory before another': (db) => activationHistory.listActivationHistory(db, 'x', { limit: 100, before: '7' }),
    'listActivationHistory of a time': (db) => activationHistory.listActivationHistory(db, 'x', { limit: 100, from: at, to: at }),
  },
  'application/config-items': {
    listConfigItems: (db) => configItems.listConfigItems(db, { applicationId: 'a', activationId: null }),
    'listConfigItems of an activation': (db) => configItems.listConfigItems(db, { applicationId: 'a', activationId: 'x' }),
    storeConfigItem: (db) => configItems.storeConfigItem(db, { applicationId: 'a', activationId: null }, configItem, at),
    deleteConfigItem: (db) => configItems.deleteConfigItem(db, { applicationId: 'a', activationId: 'x' }, configItem),
  },
  'application/oidc-providers': {
    findOidcProvider: (db) => oidcProviders.findOidcProvider(db, 'a', 'p'),
    listOidcProviders: (db) => oidcProviders.listOidcProviders(db, 'a'),
    storeOidcProvider: (db) =>
      oidcProviders.storeOidcProvider(db, { applicationId: 'a', providerId: 'p', settings: '{}', credentials: bytes }, at),
    deleteOidcProvider: (db) => oidcProviders.deleteOidcProvider(db, 'a', 'p'),
  },
  'credential/admin-events': {
    lockAdministration: (_db, tx) => adminEvents.lockAdministration(tx),
    insertAdminEvent: (_db, tx) => adminEvents.insertAdminEvent(tx, adminEvent),
    listAdminEvents: (db) => adminEvents.listAdminEvents(db, { ...NO_FILTER, limit: 1 }),
    'listAdminEvents with every filter': (db) =>
      adminEvents.listAdminEvents(db, { username: 'n', action: 'a', from: at, to: at, beforeSequence: 1, limit: 1 }),
  },
  'application/applications': {
    findApplication: (db) => applications.findApplication(db, 'a'),
    findDefaultApplicationId: (db) => applications.findDefaultApplicationId(db),
    listApplications: (db) => applications.listApplications(db),
    insertApplication: (_db, tx) => applications.insertApplication(tx, 'a', null, at),
    markDefaultApplication: (_db, tx) => applications.markDefaultApplication(tx, 'a'),
    listCustomObjects: (db) => applications.listCustomObjects(db),
    setApplicationSettings: (db) =>
      applications.setApplicationSettings(db, 'a', {
        vaultFactors: ['POSSESSION_KNOWLEDGE'],
        customObject: '{}',
        algorithms: ['EC_P384'],
        isProtocol3Admitted: false,
        roles: ['r'],
      }),
    findApplicationOfVersion: (db) => applications.findApplicationOfVersion(db, 'k'),
    findVaultFactors: (db) => applications.findVaultFactors(db, 'k'),
    findVersionOwners: (db) => applications.findVersionOwners(db, ['k']),
    listApplicationVersions: (db) => applications.listApplicationVersions(db, 'a'),
    insertApplicationVersion: (db) =>
      applications.insertApplicationVersion(db, {
        application_key: 'k',
        application_id: 'a',
        name: 'n',
        application_secret: bytes,
        created_at: at,
      }),
    setVersionSupported: (db) => applications.setVersionSupported(db, 'a', 'n', false),
    findMasterKeyPairs: (db) => applications.findMasterKeyPairs(db, 'a', ['EC_P256', 'EC_P384']),
    insertMasterKeyPair: (db) =>
      applications.insertMasterKeyPair(db, {
        master_key_pair_id: 'm',
        application_id: 'a',
        algorithm: 'EC_P256',
        public_key: bytes,
        private_key: bytes,
        created_at: at,
      }),
  },
  'audit/audit': {
    insertAuditEvent: (db) => audit.insertAuditEvent(db, auditEvent),
    heldActivation: (db) => audit.insertAuditEvent(db, auditEvent, audit.heldActivation('x')),
    'heldActivation of an application': (db) => audit.insertAuditEvent(db, auditEvent, audit.heldActivation('x', 'a')),
    listAuditItems: (db) =>
      audit.listAuditItems(db, { applicationId: 'a', userId: 'u', from: at, to: at, before: null, limit: 1 }),
    'listAuditItems of verifications': (db) =>
      audit.listAuditItems(db, {
        applicationId: 'a',
        userId: 'u',
        activationId: 'x',
        isVerified: true,
        from: at,
        to: at,
        before: null,
        limit: 1,
      }),
    listOwnerlessItems: (db) => audit.listOwnerlessItems(db, { applicationId: 'a', operationId: 'o', from: at, to: at }),
    countStranger: (db) => audit.countStranger(db, '192.0.2.0/24', at),
    deleteOldStrangerCounts: (db) => audit.deleteOldStrangerCounts(db, at, 500),
  },
  'audit/chain': {
    lockLog: (_db, tx) => auditChain.lockLog(tx, 'devices'),
    noteSealing: (_db, tx) => auditChain.noteSealing(tx, 'devices', at),
    findChains: (db) => auditChain.findChains(db),
    findLastPosition: (db) => auditChain.findLastPosition(db, { name: 'application:a', chainId: 1 }),
    'findLastPosition of administrators': (db) => auditChain.findLastPosition(db, { name: 'administration', chainId: 1 }),
    insertChain: (_db, tx) => auditChain.insertChain(tx, chain).catch(() => undefined),
    updateChain: (_db, tx) => auditChain.updateChain(tx, 1, chain),
    leaseDelivery: (db) => auditChain.leaseDelivery(db, lease),
    endDeliveryLease: (db) => auditChain.endDeliveryLease(db, 'l'),
    findDelivered: (db) => auditChain.findDelivered(db),
    noteDelivered: (db) => auditChain.noteDelivered(db, 'l', 1, place),
  },
  'audit/rows': {
    findUnsealed: (db) => auditRows.findUnsealed(db, 'devices', 500, ['application:a']),
    'findUnsealed of administrators': (db) => auditRows.findUnsealed(db, 'administrators', 500, []),
    countUnsealed: (db) => auditRows.countUnsealed(db, 'devices'),
    placeRows: (_db, tx) => auditRows.placeRows(tx, 'devices', [placed], at).catch(ignoreNoRow),
    'placeRows of administrators': (_db, tx) => auditRows.placeRows(tx, 'administrators', [placed], at).catch(ignoreNoRow),
    findSealed: (db) => auditRows.findSealed(db, { log: 'devices', chainId: 1, after: 0, limit: 1000, sealedBefore: at }),
    'findSealed of administrators': (db) =>
      auditRows.findSealed(db, { log: 'administrators', chainId: 1, after: 0, limit: 1000 }),
    findSeal: (db) => auditRows.findSeal(db, 'devices', 1, 1),
    findBeforeStart: (db) => auditRows.findBeforeStart(db, 'devices', 1, 1),
    findStrays: (db) => auditRows.findStrays(db),
    deleteAdminEvents: (_db, tx) => auditRows.deleteAdminEvents(tx, [1]),
  },
  'audit/erasure': {
    findTold: (_db, tx) => auditErasure.findTold(tx, 'devices', person, 500),
    'findTold of administrators': (_db, tx) => auditErasure.findTold(tx, 'administrators', person, 500),
    replaceFields: (_db, tx) =>
      auditErasure.replaceFields(tx, 'devices', [{ chainId: 1, position: 1, fields: placed.row.fields }]),
    'replaceFields of administrators': (_db, tx) =>
      auditErasure.replaceFields(tx, 'administrators', [{ chainId: 0, position: 1, fields: placed.row.fields }]),
    replacePending: (_db, tx) => auditErasure.replacePending(tx, person, 'erased-1'),
    provideUserKeys: (_db, tx) => auditErasure.provideUserKeys(tx, new Map([['u', bytes]])),
    deleteUserKey: (_db, tx) => auditErasure.deleteUserKey(tx, 'u'),
  },
  'user/erasure': {
    deleteUserRows: (_db, tx) => userErasure.deleteUserRows(tx, 'u', 'erased-1').catch(() => undefined),
    findActedFor: (_db, tx) => userErasure.findActedFor(tx, 'u'),
    lockUser: (_db, tx) => userErasure.lockUser(tx, 'u'),
    closeName: (db) => userErasure.closeName(db, { erasureId: 'e', salt: bytes }, 'u'),
    awaitCommits: (_db, tx) => userErasure.awaitCommits(tx),
    limitWaits: (_db, tx) => userErasure.limitWaits(tx),
    holdName: (_db, tx) => userErasure.holdName(tx, { erasureId: 'e', salt: bytes }),
    openName: (db) => userErasure.openName(db, 'u', 1000),
    deleteOpenedNames: (db) => userErasure.deleteOpenedNames(db, at, 500),
    shortenClosings: (db) => userErasure.shortenClosings(db, at, 500),
  },
  'user/data': {
    readUserRows: (db) => userData.readUserRows(db, 'u'),
    findAllUserClaims: (db) => userData.findAllUserClaims(db, 'u'),
  },
  'user/claims': {
    findUserClaims: (db) => userClaims.findUserClaims(db, 'a', 'u'),
    storeUserClaims: (db) => userClaims.storeUserClaims(db, { applicationId: 'a', userId: 'u', claims: bytes, at }),
    deleteUserClaims: (db) => userClaims.deleteUserClaims(db, 'a', 'u'),
  },
  'audit/partitions': {
    findPartitions: (db) => auditPartitions.findPartitions(db),
    addPartition: (_db, tx) => auditPartitions.addPartition(tx, at, new Date(at.getTime() + 1)),
    dropPartition: (_db, tx) => auditPartitions.dropPartition(tx, 'audit_log_until_1'),
  },
  'audit/takeover': {
    takeOverEvents: (db) => auditTakeover.takeOverEvents(db, 500),
  },
  'credential/credentials': {
    findCredential: (db) => credentials.findCredential(db, 'n'),
    listCredentials: (db) => credentials.listCredentials(db),
    hasAdmin: (db) => credentials.hasAdmin(db),
    insertCredential: (_db, tx) => credentials.insertCredential(tx, credential),
    replacePassword: (_db, tx) => credentials.replacePassword(tx, 'n', password, null),
    'replacePassword that keeps the previous': (_db, tx) => credentials.replacePassword(tx, 'n', password, at),
    lockCredential: (_db, tx) => credentials.lockCredential(tx, 'n'),
    'updateLists of addresses': (_db, tx) => credentials.updateLists(tx, 'n', { allowedAddresses: ['10.0.0.0/8'] }),
    'updateLists of rights': (_db, tx) => credentials.updateLists(tx, 'n', { rights: ['keys:derive'] }),
    'updateLists of certificates': (_db, tx) => credentials.updateLists(tx, 'n', { certificates: ['00ff'] }),
    listCertificateHolders: (db) => credentials.listCertificateHolders(db, '00ff'),
    storeCredentialMac: (_db, tx) => credentials.storeCredentialMac(tx, 'n', bytes),
    deleteCredential: (db) => credentials.deleteCredential(db, 'n'),
  },
  'template/templates': {
    findTemplate: (db) => templates.findTemplate(db, 'n'),
    listTemplates: (db) => templates.listTemplates(db),
    hasTemplateRevisions: (db) => templates.hasTemplateRevisions(db),
    findTemplateTexts: (db) => templates.findTemplateTexts(db, ['r', 's']),
    lockTemplates: (_db, tx) => templates.lockTemplates(tx),
    putTemplate: (_db, tx) =>
      templates.putTemplate(tx, templateContent, { source: 'administration', templateRevisionId: 'r', at, onlyIf: 'absent' }),
    deleteTemplate: (db) => templates.deleteTemplate(db, 'n'),
  },
  'operation/idempotency-keys': {
    takeIdempotencyKey: (_db, tx) =>
      idempotencyKeys.takeIdempotencyKey(tx, { username: 'n', key: 'k', bodyHash: bytes }, 'o', at, at).catch(ignoreNoRow),
    findIdempotencyKey: (db) => idempotencyKeys.findIdempotencyKey(db, 'n', 'k'),
    deleteExpiredIdempotencyKeys: (db) => idempotencyKeys.deleteExpiredIdempotencyKeys(db, at, 500),
  },
  'user/inbox-messages': {
    insertInboxMessage: (db) =>
      inboxMessages.insertInboxMessage(db, {
        message_id: 'm',
        application_id: 'a',
        user_id: 'u',
        type: 'text',
        subject: 's',
        summary: 's',
        body: 'b',
        created_at: at,
      }),
    listInboxMessages: (db) => inboxMessages.listInboxMessages(db, owner, { page: 0, size: 10, onlyUnread: true }),
    findInboxMessage: (db) => inboxMessages.findInboxMessage(db, owner, 'm'),
    findMessageOfApplication: (db) => inboxMessages.findMessageOfApplication(db, 'a', 'm'),
    deleteInboxMessage: (db) => inboxMessages.deleteInboxMessage(db, 'a', 'm'),
    markMessageRead: (db) => inboxMessages.markMessageRead(db, owner, 'm'),
    markAllMessagesRead: (db) => inboxMessages.markAllMessagesRead(db, owner),
  },
  'operation/operations': {
    insertOperation: (db) => operations.insertOperation(db, operation, auditEvent),
    'insertOperation of nobody': (db) => operations.insertOperation(db, { ...operation, userId: null }, auditEvent),
    findOperation: (db) => operations.findOperation(db, 'a', 'o'),
    lockOperation: (_db, tx) => operations.lockOperation(tx, 'a', 'o', 'x'),
    listUserOperations: (db) => operations.listUserOperations(db, { ...owner, activationId: 'x' }, 100),
    searchOperations: (db) => operations.searchOperations(db, 'a', { limit: 100 }),
    'searchOperations with everything': (db) =>
      operations.searchOperations(db, 'a', {
        userId: 'u',
        pendingAt: at,
        after: { createdAt: at, operationId: 'o' },
        limit: 100,
      }),
    'searchOperations from a place on': (db) => operations.searchOperations(db, 'a', { userId: 'u', limit: 100, offset: 100 }),
    listOperationNotes: (db) => operations.listOperationNotes(db, ['o', 'p']),
    searchOperationsWith: (db) => operations.searchOperationsWith(db, 'a', { limit: 100 }, 'u'),
    'searchOperations of a beginning': (db) => operations.searchOperations(db, 'a', { userIdPrefix: 'u', limit: 100 }),
    listOperationsOfIds: (db) => operations.listOperationsOfIds(db, 'a', ['o']),
    insertOperationNonce: (db) => operations.insertOperationNonce(db, 'o', 'n', at, 10),
    hasOperationNonce: (db) => operations.hasOperationNonce(db, 'o', 'n', 10),
    deleteUselessNonces: (db) => operations.deleteUselessNonces(db, at, 500),
  },
  'operation/transitions': {
    claimOperation: (db) => operationTransitions.claimOperation(db, 'o', auditEvent),
    endOperation: (db) =>
      operationTransitions.endOperation(
        db,
        { operationId: 'o', to: 'APPROVED', statusReason: null, additionalData: null, at },
        auditEvent,
      ),
    cancelPendingOperation: (db) =>
      operationTransitions.cancelPendingOperation(
        db,
        'a',
        { operationId: 'o', to: 'CANCELED', statusReason: null, additionalData: null, at },
        { eventType: 't', eventData: 'd', occurredAt: at },
      ),
    countOperationFailure: (db) => operationTransitions.countOperationFailure(db, 'o', at, auditEvent),
    expireOperation: (db) => operationTransitions.expireOperation(db, 'o', at),
    expireOperations: (db) => operationTransitions.expireOperations(db, at, 500),
  },
  'token/push-registrations': {
    putPushRegistration: (_db, _tx, found) =>
      pushRegistrations.putPushRegistration(
        found,
        { activationId: 'x', platform: 'apns', environment: null, pushToken: bytes, pushTokenHash: bytes },
        at,
      ),
    listPushRegistrations: (db) => pushRegistrations.listPushRegistrations(db, 'a', 'u'),
    findPushTarget: (db) => pushRegistrations.findPushTarget(db, { activationId: 'x', platform: 'apns', objectId: 'o', at }),
    forgetPushToken: (db) => pushRegistrations.forgetPushToken(db, 'x', bytes),
  },
  'pinning/pinning': {
    findPinningKeyPair: (db) => pinning.findPinningKeyPair(db, 'a'),
    insertPinningKeyPair: (db) =>
      pinning.insertPinningKeyPair(db, { applicationId: 'a', publicKey: bytes, privateKey: bytes, createdAt: at }),
    listPinnedCertificates: (db) => pinning.listPinnedCertificates(db, 'a'),
    findPinnedCertificate: (db) => pinning.findPinnedCertificate(db, 'a', 'd', bytes),
    insertPinnedCertificate: (db) =>
      pinning.insertPinnedCertificate(db, {
        applicationId: 'a',
        domain: 'd',
        port: null,
        fingerprint: bytes,
        expiresAt: at,
        source: 'pem',
        certificate: bytes,
        createdAt: at,
      }),
    deletePinnedCertificate: (db) => pinning.deletePinnedCertificate(db, 'a', 'd', bytes),
    deletePinnedDomain: (db) => pinning.deletePinnedDomain(db, 'a', 'd'),
    deleteExpiredCertificates: (db) => pinning.deleteExpiredCertificates(db, at).catch(ignoreNoRow),
    listPinnedDomains: (db) => pinning.listPinnedDomains(db, 'a'),
    claimDueDomains: (db) => pinning.claimDueDomains(db, { at, until: at, latest: at }, 10),
    storeDomainCheck: (db) =>
      pinning.storeDomainCheck(db, {
        applicationId: 'a',
        domain: 'd',
        checkedAt: at,
        nextCheckAt: at,
        liveFingerprint: bytes,
        liveExpiresAt: at,
        isChainTrusted: true,
        problem: null,
      }),
  },
  'credential/console-sessions': {
    insertSession: (_db, tx) =>
      consoleSessions.insertSession(tx, {
        sessionId: 's',
        tokenHash: Buffer.from(bytes),
        username: 'n',
        credentialMac: Buffer.from(bytes),
        source: '192.0.2.1',
        createdAt: at,
        lastSeenAt: at,
        expiresAt: at,
        mac: Buffer.from(bytes),
      }),
    findSession: (db) => consoleSessions.findSession(db, bytes),
    listSessions: (db) => consoleSessions.listSessions(db, { after: at, until: at }, at),
    touchSession: (db) => consoleSessions.touchSession(db, 's', at),
    deleteSession: (db) => consoleSessions.deleteSession(db, 's'),
    deleteEndedSessions: (db) => consoleSessions.deleteEndedSessions(db, at, 500),
  },
  retention: {
    deleteOldOperations: (db) => retention.deleteOldOperations(db, at, 500),
    deleteOldActivations: (db) => retention.deleteOldActivations(db, at, 500),
    deleteOldMessages: (db) => retention.deleteOldMessages(db, at, 500),
  },
  'credential/failure-counts': {
    addFailures: (db) =>
      failureCounts.addFailures(db, [{ failureKey: bytes, failures: 1, endsAt: at, waits: 0, waitEndsAt: at }]),
    findFailures: (db) => failureCounts.findFailures(db, bytes),
    deleteOldFailureCounts: (db) => failureCounts.deleteOldFailureCounts(db, at, 500),
  },
  'application/temporary-keys': {
    insertTemporaryKey: (db) => temporaryKeys.insertTemporaryKey(db, temporaryKey),
    'insertTemporaryKey for several at once': (db) =>
      Promise.all(['t', 'u'].map((temporaryKeyId) => temporaryKeys.insertTemporaryKey(db, { ...temporaryKey, temporaryKeyId }))),
    deleteExpiredTemporaryKeys: (db) => temporaryKeys.deleteExpiredTemporaryKeys(db, at, 500),
  },
  'token/reads': {
    createTokenReads: async (db) => {
      const { pendingOperations, operation: one, unreadMessages } = tokenReads.createTokenReads(db)
      await pendingOperations({ tokenId: 't', at })
      await Promise.all([pendingOperations({ tokenId: 't', at }), pendingOperations({ tokenId: 's', at })])
      await one({ tokenId: 't', at, operationId: 'o' })
      await unreadMessages({ tokenId: 't', at })
    },
  },
  'token/tokens': {
    insertToken: (db) =>
      tokens.insertToken(db, { tokenId: 't', activationId: 'x', factors: 'POSSESSION', tokenSecret: bytes }, auditEvent, {
        valueHash: bytes,
        expiresAt: at,
      }),
    deleteToken: (db) => tokens.deleteToken(db, 'x', 't', auditEvent),
    listTokens: (db) => tokens.listTokens(db, { applicationId: 'a', activationId: 'x' }, at),
    deleteTokenOfRegistration: (db) =>
      tokens.deleteTokenOfRegistration(db, { applicationId: 'a', activationId: 'x' }, 't', {
        eventType: 't',
        eventData: 'd',
        verifiedBy: 'b',
        occurredAt: at,
      }),
  },
  vacuum: {
    vacuumFullest: (db) => vacuum.vacuumFullest(db),
    analyzeGrown: (db) => vacuum.analyzeGrown(db, () => undefined),
  },
  'activation/unique-values': {
    createUniqueValueStore: async (db) => {
      const use = uniqueValues.createUniqueValueStore(db)
      await Promise.all([use([{ valueHash: bytes, expiresAt: at }]), use([{ valueHash: bytes, expiresAt: at }])])
    },
    useUniqueValues: (db) => uniqueValues.useUniqueValues(db, [{ valueHash: bytes, expiresAt: at }]),
    deleteExpiredUniqueValues: (db) => uniqueValues.deleteExpiredUniqueValues(db, at, 500),
  },
  'webhook/deliveries': {
    listDueWebhooks: (db) => webhookDeliveries.listDueWebhooks(db, at, ['apns']),
    claimDeliveries: (db) => webhookDeliveries.claimDeliveries(db, 'w', lease, 16),
    claimProbe: (db) => webhookDeliveries.claimProbe(db, 'w', lease, at),
    dropDelivery: (db) => webhookDeliveries.dropDelivery(db, '1', 'l'),
    storeDelivered: (db) => webhookDeliveries.storeDelivered(db, '1', 'l', at),
    storeFailures: (db) =>
      webhookDeliveries.storeFailures(db, 'l', [{ sequence: '1', attempts: 1, nextAttemptAt: null, reason: 'r' }], at),
    listDeliveries: (db) =>
      webhookDeliveries.listDeliveries(db, 'w', { status: 'DEAD', objectId: null, before: null, limit: 100 }),
    'listDeliveries about one object': (db) =>
      webhookDeliveries.listDeliveries(db, 'w', { status: null, objectId: 'o', before: null, limit: 100 }),
    findDelivery: (db) => webhookDeliveries.findDelivery(db, 'w', 'd'),
    replayDelivery: (db) => webhookDeliveries.replayDelivery(db, 'w', 'd'),
    replayDeadDeliveries: (db) => webhookDeliveries.replayDeadDeliveries(db, 'w', 1_000),
    deleteDeliveriesOf: (db) => webhookDeliveries.deleteDeliveriesOf(db, 'w', 1_000),
    deleteOldDeliveries: (db) => webhookDeliveries.deleteOldDeliveries(db, at, 500),
    bringBackDeliveries: (db) => webhookDeliveries.bringBackDeliveries(db, at, at, 500),
  },
  'webhook/push-providers': {
    enablePushProviders: (db) => pushProviders.enablePushProviders(db, [{ provider: 'apns', url: 'u' }], at),
    listPushProviders: (db) => pushProviders.listPushProviders(db),
  },
  'webhook/webhooks': {
    findWebhook: (db) => webhooks.findWebhook(db, 'w'),
    listWebhooks: (db) => webhooks.listWebhooks(db, null),
    insertWebhook: (db) => webhooks.insertWebhook(db, webhook),
    updateWebhook: (db) => webhooks.updateWebhook(db, 'w', { ...webhook, basic: undefined, at }),
    replaceWebhookSecret: (db) =>
      webhooks.replaceWebhookSecret(db, 'w', { from: bytes, to: bytes, previous: null, previousExpiresAt: null }),
    lockBasic: (_db, tx) => webhooks.lockBasic(tx),
    storeBasicMac: (_db, tx) => webhooks.storeBasicMac(tx, 'w', bytes),
    deleteWebhook: (db) => webhooks.deleteWebhook(db, 'w'),
    storeWebhookFailure: (db) =>
      webhooks.storeWebhookFailure(db, 'w', {
        sentTo: { url: 'u', changeCount: 0 },
        failed: 1,
        at,
        probeAt: at,
        pausedUntil: null,
        disabledReason: null,
      }),
    storeWebhookSuccess: (db) =>
      webhooks.storeWebhookSuccess(db, 'w', { sentTo: { url: 'u', changeCount: 0 }, delivered: 1, at, failingSince: at }),
    bringBackWebhooks: (db) =>
      webhooks.bringBackWebhooks(db, { at, probeLatest: at, pauseLatest: at, failingLatest: at, failingSince: at }),
  },
  'pinning/version-rules': {
    listVersionRules: (db) => versionRules.listVersionRules(db, 'a'),
    findVersionRule: (db) => versionRules.findVersionRule(db, 'a', 1),
    insertVersionRule: (db) =>
      versionRules.insertVersionRule(db, { application_id: 'a', platform: 'IOS', created_at: at }).catch(ignoreNoRow),
    deleteVersionRule: (db) => versionRules.deleteVersionRule(db, 'a', 1),
    listVersionTexts: (db) => versionRules.listVersionTexts(db),
    listVersionTextsOf: (db) => versionRules.listVersionTextsOf(db, 'a'),
    findVersionText: (db) => versionRules.findVersionText(db, 'k', 'en'),
    storeVersionText: (db) => versionRules.storeVersionText(db, { messageKey: 'k', language: 'en', text: 't' }),
    deleteVersionText: (db) => versionRules.deleteVersionText(db, 'k', 'en'),
  },
  'vital-signs': {
    readVitalSigns: (db) => vitalSigns.readVitalSigns(db).catch(ignoreNoRow),
  },
  'secrets/sealed-columns': {
    readSealedRows: (db) => sealedColumns.readSealedRows(db, PAIRED, undefined, 2),
    'readSealedRows behind one': (db) => sealedColumns.readSealedRows(db, PAIRED, ['a', 'u'], 2),
    replaceSealedRows: (db) =>
      sealedColumns.replaceSealedRows(db, PAIRED, [{ key: ['a', 'u'], values: [Buffer.from(bytes)], next: [bytes] }]),
    countByKey: (db) => sealedColumns.countByKey(db),
    'readSealedRows of values that are bound': async (db) => {
      for (const table of sealedColumns.OWNED_TABLES) await sealedColumns.readSealedRows(db, table, undefined, 2)
    },
  },
  'secrets/record-binding': {
    findBinding: (db) => recordBinding.findBinding(db, 120),
    signBinding: (db) => recordBinding.signBinding(db, bytes),
    beginBinding: (db) => recordBinding.beginBinding(db, bytes),
    endBinding: (db) => recordBinding.endBinding(db),
    hasBoundRecords: (db) => recordBinding.hasBoundRecords(db),
    countUnbound: (db) => recordBinding.countUnbound(db).catch(ignoreNoRow),
  },
  'secrets/wrapped-keys': {
    hasWrappedKeys: (db) => wrappedKeys.hasWrappedKeys(db),
    findWrappedKey: (db) => wrappedKeys.findWrappedKey(db, 'p'),
    insertWrappedKey: (db) => wrappedKeys.insertWrappedKey(db, 'p', bytes, at),
  },
}

const STORAGE = new URL('../../src/storage/', import.meta.url)

/** Modules of src/storage without queries of their own. */
const NO_QUERIES = ['activation/columns', 'activation/seen-state', 'application/version', 'request/recent-phones']

test.each(Object.entries(calls))('the SQL of %s is the committed one', async (name, functions) => {
  const parts: string[] = []
  for (const [title, call] of Object.entries(functions)) {
    const texts: string[] = []
    const db = createRecorder(texts, [])
    await call(db as Pool, db as Tx, createRecorder(texts, [{}]) as Pool)
    parts.push(`-- ${title}\n${texts.join(';\n')};\n`)
  }
  await expect(parts.join('\n')).toMatchFileSnapshot(`${name}.sql.snap`)
})

// The recorder answers every query with no row.
const ignoreNoRow = (): undefined => undefined

const NOT_QUERIES = [
  'fieldsOf',
  'isTold',
  'toSealable',
  'selectActivation',
  'fromOwners',
  'slotOf',
  'forgetRest',
  'isValueUsed',
  'insertHistoryFrom',
  'insertAuditFrom',
  'toAuditGiven',
  'moveDue',
  'logOfChain',
  'toTemporaryKey',
  'joinTemporaryKey',
  'toToken',
  'insertTwoValuesFrom',
  'insertValuesFrom',
  'selectValues',
  'toValueColumns',
  'insertVerdictsFrom',
  'joinKnownVerdict',
  'toKnownVerdict',
  'toVerdictColumns',
  'selectVerdict',
  'joinToken',
  'both',
  'defineLookup',
  'toActivation',
  'toOperation',
  'readParameters',
  'toLocked',
  'isForPhone',
  'operationsOf',
  'tellsOf',
  'toCustomObject',
]

test('every storage function is among them', async () => {
  const names = listModules()
  // A name that no file has any more would hide the next one of that name.
  expect(NO_QUERIES.filter((name) => !names.includes(name))).toEqual([])
  const missing: string[] = []
  for (const name of names.filter((each) => !NO_QUERIES.includes(each))) {
    const module = (await import(/* @vite-ignore */ new URL(`${name}.ts`, STORAGE).href)) as Record<string, unknown>
    const known = Object.keys(calls[name] ?? {}).map((title) => title.split(' ')[0])
    const functions = Object.keys(module).filter((key) => typeof module[key] === 'function' && !NOT_QUERIES.includes(key))
    missing.push(...functions.filter((key) => !known.includes(key)).map((key) => `${name}: ${key}`))
    if (functions.length === 0) missing.push(`${name} exports no function`)
  }
  expect(missing).toEqual([])
})

/** Paths below src/storage of what asks something, without their ending; src/storage/database asks nothing of its own. */
const listModules = (): string[] =>
  readdirSync(STORAGE, { encoding: 'utf8', recursive: true })
    .filter((file) => /(?<!\.test)\.ts$/.test(file) && !file.startsWith('database/'))
    .map((file) => file.slice(0, -'.ts'.length))

test.each(['audit_pending', 'activation_history'])('one place writes new rows of %s', (table) => {
  const texts = listModules()
    .filter((name) => name !== 'audit/takeover')
    .map((name) => readFileSync(new URL(`${name}.ts`, STORAGE), 'utf8'))
  const inserts = texts.flatMap((text) => text.match(new RegExp(`into ${table}\\b|insertInto\\('${table}'`, 'g')) ?? [])
  expect(inserts).toHaveLength(1)
})

/** A Kysely that runs nothing, answers each query with `rows`, and adds the text of what it was asked to run to `texts`. */
function createRecorder(texts: string[], rows: readonly object[]): Db {
  class Driver extends DummyDriver {
    override async acquireConnection(): Promise<DatabaseConnection> {
      return Object.assign(await super.acquireConnection(), { executeQuery: async () => ({ rows }) })
    }
  }
  return new Kysely<Schema>({
    dialect: {
      createAdapter: () => new PostgresAdapter(),
      createDriver: () => new Driver(),
      createIntrospector: (database) => new PostgresIntrospector(database),
      createQueryCompiler: () => new PostgresQueryCompiler(),
    },
    log: ({ query }) => {
      texts.push(query.sql.trim())
    },
  })
}
