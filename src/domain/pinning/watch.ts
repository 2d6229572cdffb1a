// Checks once a day the certificate that each pinned domain shows. A certificate that is not pinned raises an alarm, because apps will refuse it
// (utility §4). Several processes share the work by claims in the database.
import type { Clocked } from '../../lib/clock.ts'
import { OutboundError } from '../../lib/outbound.ts'
import { startRounds } from '../../lib/rounds.ts'
import { claimDueDomains, type DomainCheck, type DueDomain, storeDomainCheck } from '../../storage/pinning/pinning.ts'
import type { DomainParts } from '../secrets/secrets.ts'
import { fetchCertificate, type FetchSettings, toHostName } from './certificate.ts'

/** The parts of the watch, with the addresses that it may connect to. */
interface Watch extends DomainParts {
  readonly settings: FetchSettings
}

/** Starts the timer; the returned function stops it and waits for a round that runs. */
export const startCertificateWatch = (parts: Watch & Clocked): (() => Promise<void>) =>
  startRounds((signal) => runCertificateWatch(parts, signal), ROUND_MS, {
    onFailure: (err) => parts.events.certificateWatchFailed({ err }),
    onDone: (ms) => parts.events.roundDone({ work: 'certificate_watch', ms }),
    mayRun: parts.clock.isAgreed,
  })

/** Runs one round: checks every domain that is due and that no other process has claimed. */
export async function runCertificateWatch(parts: Watch, signal?: AbortSignal): Promise<void> {
  const claim = async (): Promise<readonly DueDomain[]> => {
    if (signal?.aborted === true) return []
    const now = parts.platform.now()
    const claimed = { at: new Date(now), until: new Date(now + CLAIM_MS), latest: new Date(now + PERIOD_MS + SLACK_MS) }
    return claimDueDomains(parts.db, claimed, BATCH_DOMAINS)
  }
  for (let due = await claim(); due.length > 0; due = await claim()) {
    await Promise.all(due.map((domain) => checkDomain(parts, domain, signal)))
  }
}

async function checkDomain(parts: Watch, { applicationId, domain, port }: DueDomain, signal: AbortSignal | undefined) {
  const { db, platform, events } = parts
  const host = toHostName(domain)
  const seen = host === undefined ? NOTHING : await look(parts, host, port, signal)
  // The end of the process has cut the check off, so its result says nothing. The claim expires, and another process checks the domain.
  if (signal?.aborted === true) return
  const now = platform.now()
  const isPinned = await storeDomainCheck(db, {
    applicationId,
    domain,
    // A pin for a wildcard, for example, names no host to connect to.
    checkedAt: host === undefined ? null : new Date(now),
    nextCheckAt: new Date(now + PERIOD_MS),
    ...seen,
  })
  if (host === undefined || isPinned === undefined) return
  if (seen.liveExpiresAt === null) {
    events.certificateNotSeen({ applicationId, domain, reason: seen.problem ?? '' })
    return
  }
  const daysToExpiry = daysBetween(now, seen.liveExpiresAt.getTime())
  if (isPinned) events.certificateSeen({ applicationId, domain, daysToExpiry })
  else events.certificateNotPinned({ applicationId, domain, daysToExpiry })
}

type Seen = Pick<DomainCheck, 'liveFingerprint' | 'liveExpiresAt' | 'isChainTrusted' | 'problem'>

async function look(
  { settings }: Pick<Watch, 'settings'>,
  host: string,
  port: number,
  signal: AbortSignal | undefined,
): Promise<Seen> {
  if (!settings.certificateFetchPorts.includes(port))
    return { ...NOTHING, problem: `port ${port} is not allowed by PAWL_CERTIFICATE_FETCH_PORTS` }
  try {
    const { certificate, chainProblem } = await fetchCertificate(settings, host, port, signal)
    return {
      liveFingerprint: certificate.fingerprint,
      liveExpiresAt: new Date(certificate.expiresAt),
      isChainTrusted: chainProblem === undefined,
      problem: null,
    }
  } catch (error) {
    if (error instanceof OutboundError) return { ...NOTHING, problem: error.message }
    throw error
  }
}

/** Whole days from `now` to `then`, negative when it is past. */
export const daysBetween = (now: number, then: number): number => Math.floor((then - now) / DAY_MS)

const NOTHING: Seen = { liveFingerprint: null, liveExpiresAt: null, isChainTrusted: null, problem: null }
const DAY_MS = 86_400_000
const PERIOD_MS = DAY_MS
const ROUND_MS = 60_000
const SLACK_MS = 60_000
// This is longer than any batch takes.
const CLAIM_MS = 120_000
const BATCH_DOMAINS = 10
