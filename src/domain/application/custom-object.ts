// Finds the custom object of an application for the plain answers of activation/status (v3 §9.2).
//
// Anybody may ask for the status of any id, and the answer must not show whether the id exists. So an unknown id is answered like an activation of
// one of the applications. A keyed hash of the id picks this application, so it is always the same one (DIVERGENCES#custom-object).
import type { KeyObject } from 'node:crypto'
import { hmac } from '../../crypto/hash.ts'
import { toHex, utf8 } from '../../lib/bytes.ts'
import { type CustomObjects, listCustomObjects } from '../../storage/application/applications.ts'
import type { Db } from '../../storage/database/database.ts'

/** The custom objects that one process remembers. */
export interface CustomObjectMemory {
  /** The custom object for the status of an id. */
  readonly find: (status: {
    readonly activationId: string
    /** The application of the activation, if there is one. */
    readonly applicationId: string | undefined
    /** The state of the table of applications, as the statement of the request read it. */
    readonly applicationsState: string
  }) => Promise<Readonly<Record<string, unknown>> | undefined>
}

/** Remembers the custom objects of all applications until one of the applications is written. */
export function createCustomObjectMemory(db: Db, codeLookup: KeyObject): CustomObjectMemory {
  let known: CustomObjects | undefined
  return {
    find: async ({ activationId, applicationId, applicationsState }) => {
      if (known?.state !== applicationsState) known = await listCustomObjects(db)
      const { applications } = known
      const [first] = applications
      // If all applications have the same object, or all have none, the answer does not depend on the id.
      const isSame = applications.every(({ customObjectText }) => customObjectText === first?.customObjectText)
      const application = isSame ? first : pick(applications, codeLookup, activationId, applicationId)
      const text = application?.customObjectText ?? null
      return text === null ? undefined : (JSON.parse(text) as Record<string, unknown>)
    },
  }
}

/** The application of an activation; for an unknown id, the one that the hash of the id selects. */
function pick(
  applications: CustomObjects['applications'],
  key: KeyObject,
  activationId: string,
  applicationId: string | undefined,
): CustomObjects['applications'][number] | undefined {
  // This is also computed for a known id, so that the time of the answer does not differ.
  const ranks = applications.map((application) => rank(key, activationId, application.applicationId))
  const preferred = applications[ranks.indexOf(ranks.toSorted()[0] ?? '')]
  return applications.find((application) => application.applicationId === applicationId) ?? preferred
}

// The same key hashes activation codes. No code has this form, so no value is hashed for both purposes.
const rank = (key: KeyObject, activationId: string, applicationId: string): string =>
  toHex(hmac(key, utf8(JSON.stringify(['custom-object', activationId, applicationId]))))
