// pawl certificate dev: makes the certificates for development, and prints how phones come to trust them.
import { X509Certificate } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { systemPlatform } from '../../src/lib/platform.ts'
import type { Answer, Terminal } from '../command.ts'
import { usageFault } from '../fault.ts'
import { isName, listAddresses, OWN_NAMES } from './addresses.ts'
import { createCertificates, defaultFolder } from './certificates.ts'

interface Values {
  readonly name: readonly string[]
  readonly folder: string | undefined
  readonly force: boolean
}

/** Throws a Fault for a wrong name, and without `force` when there are certificates already. */
export async function makeCertificates({ name, folder, force }: Values, { env }: Pick<Terminal, 'env'>): Promise<Answer> {
  const wrong = name.find((one) => !isName(one))
  if (wrong !== undefined) throw usageFault(`--name ${wrong} is no host name and no address`)
  const names = [...new Set([...OWN_NAMES, ...listAddresses(), ...name])]
  const files = createCertificates(folder ?? defaultFolder(env), names, { platform: systemPlatform, force })
  const [authorityEnds, serverEnds] = [files.authority, files.server].map((path) =>
    new Date(new X509Certificate(readFileSync(path, 'utf8')).validTo).toISOString().slice(0, 10),
  )
  return {
    json: { ...files, names, authorityEnds, serverEnds },
    text: `${files.authority}  the authority that phones have to trust, until ${authorityEnds}
${files.server}  the certificate of the server, until ${serverEnds}, for
  ${names.join(', ')}
${files.authorityKey}, ${files.serverKey}  their keys, for this account alone

Android: copy authority.crt into the app as res/raw/authority.crt, and write res/xml/network_security_config.xml:
  <network-security-config><debug-overrides><trust-anchors>
    <certificates src="@raw/authority" />
  </trust-anchors></debug-overrides></network-security-config>
  The element <application> of the manifest gets android:networkSecurityConfig="@xml/network_security_config". Debug builds then trust it.
Simulator of iOS: xcrun simctl keychain booted add-root-cert ${files.authority}
iPhone: send authority.crt to it, by AirDrop for instance, and install it in Settings, General, VPN & Device Management. Then switch it on
  in Settings, General, About, Certificate Trust Settings.
Whoever has authority.key may read what phones send that trust the authority: leave it here. It says that it signs for private addresses and
the names above alone, but not every phone holds an authority to that. Remove it from a phone that no longer needs it.
`,
  }
}
