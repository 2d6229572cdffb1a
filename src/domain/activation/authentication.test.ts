// Tests the counting rules of v3 §10.5 as a table.
import { describe, expect, test } from 'vitest'
import { type AuthenticationAttempt, type AuthenticationState, decideAuthentication } from './authentication.ts'

const active = (failedAttempts: number): AuthenticationState => ({
  state: 'ACTIVE',
  failedAttempts,
  maxFailedAttempts: 5,
  blocksInRow: 2,
})
const right: AuthenticationAttempt = { valid: true, isCounted: true }
const wrong: AuthenticationAttempt = { valid: false, isCounted: true }
const rightPossession: AuthenticationAttempt = { valid: true, isCounted: false }
const wrongPossession: AuthenticationAttempt = { valid: false, isCounted: false }

describe('an active activation', () => {
  test('accepts a right code and forgets failures and blocks', () => {
    expect(decideAuthentication(active(3), right)).toEqual({ valid: true, state: 'ACTIVE', failedAttempts: 0, blocksInRow: 0 })
  })

  test('keeps failures and blocks when possession alone was right', () => {
    expect(decideAuthentication(active(3), rightPossession)).toEqual({
      valid: true,
      state: 'ACTIVE',
      failedAttempts: 3,
      blocksInRow: 2,
    })
  })

  test('counts a wrong code', () => {
    expect(decideAuthentication(active(3), wrong)).toEqual({ valid: false, state: 'ACTIVE', failedAttempts: 4, blocksInRow: 2 })
  })

  test('does not count wrong possession', () => {
    expect(decideAuthentication(active(4), wrongPossession)).toEqual({
      valid: false,
      state: 'ACTIVE',
      failedAttempts: 4,
      blocksInRow: 2,
    })
  })

  test('is blocked by the code that reaches the maximum', () => {
    const decision = { valid: false, state: 'BLOCKED', failedAttempts: 5, blocksInRow: 3, blockedReason: 'MAX_FAILED_ATTEMPTS' }
    expect(decideAuthentication(active(4), wrong)).toEqual(decision)
  })

  test('that is at the maximum already is blocked whatever comes', () => {
    for (const attempt of [right, wrong, rightPossession, wrongPossession]) {
      expect(decideAuthentication(active(5), attempt)).toMatchObject({ valid: false, state: 'BLOCKED', failedAttempts: 5 })
    }
  })
})

describe('an activation that waits for its commit, where that is accepted', () => {
  const pending = (failedAttempts: number) => ({ ...active(failedAttempts), state: 'PENDING_COMMIT', blocksInRow: 0 }) as const
  const decide = (failedAttempts: number, attempt: AuthenticationAttempt) =>
    decideAuthentication(pending(failedAttempts), { ...attempt, isPendingAccepted: true })

  test('accepts a right code and forgets no failure: wrong OTPs are among them', () => {
    expect(decide(4, right)).toEqual({ valid: true, state: 'PENDING_COMMIT', failedAttempts: 4, blocksInRow: 0 })
  })

  test('counts wrong codes up to the maximum, at which no code is right, and is not blocked', () => {
    expect(decide(4, wrong)).toEqual({ valid: false, state: 'PENDING_COMMIT', failedAttempts: 5, blocksInRow: 0 })
    for (const attempt of [right, wrong, rightPossession, wrongPossession])
      expect(decide(5, attempt)).toEqual({ valid: false, state: 'PENDING_COMMIT', failedAttempts: 5, blocksInRow: 0 })
  })
})

test.each(['CREATED', 'PENDING_COMMIT', 'BLOCKED', 'REMOVED'] as const)('nothing is accepted or counted in %s', (state) => {
  for (const attempt of [right, wrong, rightPossession, wrongPossession]) {
    const current = { state, failedAttempts: 2, maxFailedAttempts: 5, blocksInRow: 1 }
    expect(decideAuthentication(current, attempt)).toEqual({ valid: false, state, failedAttempts: 2, blocksInRow: 1 })
  }
})
