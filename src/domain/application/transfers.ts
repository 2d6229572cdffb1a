// To which applications the phones of an application may hand over (mobile-token §9).
import { administrationRefused, notFound, type PawlError } from '../../lib/errors.ts'
import { listApplications, type Transfer } from '../../storage/application/applications.ts'
import type { Db } from '../../storage/database/database.ts'

/** Throws ADMINISTRATION_REFUSED unless each target is another application, which exists, and stands in one entry. */
export async function requireTransfers(db: Db, applicationId: string, transfers: readonly Transfer[]): Promise<void> {
  const targets = transfers.flatMap((transfer) => transfer.targets)
  const known = new Set((await listApplications(db)).map((application) => application.applicationId))
  for (const [index, target] of targets.entries()) {
    if (target === applicationId) throw refuse(`${target} is the application itself`)
    if (targets.indexOf(target) !== index) throw refuse(`${target} stands in more than one entry`)
    if (!known.has(target)) throw notFound(`application ${target}`)
  }
}

/** What is configured for a target; undefined when it is none. */
export const findTransfer = (transfers: readonly Transfer[], target: string): Transfer | undefined =>
  transfers.find(({ targets }) => targets.includes(target))

const refuse = (hint: string): PawlError => administrationRefused('transfers', hint)
