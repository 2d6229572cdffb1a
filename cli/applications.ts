// Finds the application that a command means, and the values that are compiled into its mobile app.
import type { Bank } from './bank.ts'
import { Fault } from './fault.ts'
import { toPath, toQuery } from './query.ts'

/** The id of the server's default application, if there is one. */
export async function findDefaultApplication(bank: Bank): Promise<string | undefined> {
  const { applications } = await bank.call<{ applications: { id: string; isDefault: boolean }[] }>('GET', '/admin/applications')
  return applications.find(({ isDefault }) => isDefault)?.id
}

/** The application that was named, else the default one of the server. Throws a Fault when there is none. */
export async function chooseApplication(bank: Bank, named: string | undefined): Promise<string> {
  const chosen = named ?? (await findDefaultApplication(bank))
  if (chosen === undefined)
    throw new Fault('missing', 'there is no default application: --app names one, pawl app create makes one')
  return chosen
}

/** The server's answer to an administrator who reads a version of an application. */
export interface ApplicationDetail {
  readonly appKey: string
  /** Base64 of a point: of P-384 when the application admits no phone of protocol 3, else of P-256. */
  readonly masterServerPublicKey: string
  readonly serviceBaseUrl: string
  readonly appSecret?: string
  readonly mobileSdkConfig?: string
}

/** Throws a Fault when the server knows no such application or version. */
export async function readApplication(bank: Bank, id: string, version?: string): Promise<ApplicationDetail> {
  const path = toPath`/admin/applications/${id}` + toQuery({ version })
  return (await bank.call<{ responseObject: ApplicationDetail }>('GET', path)).responseObject
}

/** The configuration text for an SDK of 4.0. Throws a Fault when the credential may not see it. */
export function sdkConfigOf({ mobileSdkConfig }: ApplicationDetail): string {
  if (mobileSdkConfig !== undefined) return mobileSdkConfig
  throw new Fault('credential', 'this credential may not see the application secret')
}
