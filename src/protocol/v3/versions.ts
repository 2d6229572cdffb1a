// Maps protocol 3.0 to 3.3 to rows of capabilities (v3 §6, table). No other file of v3 contains version text.

/** The capabilities of one version of the protocol. */
export interface Capabilities {
  /** Envelopes carry a nonce, from which the IV is derived (v3 §6.2). */
  readonly nonce: boolean
  /**
   * Envelopes carry a timestamp, answers a nonce and a timestamp of their own (v3 §6). Each request is valid once, and
   * tokens only in the short time window (v3 §14).
   */
  readonly timestamp: boolean
  /** Version text enters sharedInfo1, associated data and token digests (v3 §6.1, §6.3, §11.2). */
  readonly versionBinding: boolean
  /** Envelopes are made for a temporary key (v3 §7). */
  readonly temporaryKeys: boolean
  /** Authentication codes are decimal groups; otherwise Base64 (v3 §10.3). */
  readonly decimalCodes: boolean
}

/** The capabilities of a version; undefined when v3 does not define the version. */
export const capabilitiesOf = (version: string): Capabilities | undefined => rows.get(version)

const rows: ReadonlyMap<string, Capabilities> = new Map([
  ['3.0', { nonce: false, timestamp: false, versionBinding: false, temporaryKeys: false, decimalCodes: true }],
  ['3.1', { nonce: true, timestamp: false, versionBinding: false, temporaryKeys: false, decimalCodes: false }],
  ['3.2', { nonce: true, timestamp: true, versionBinding: true, temporaryKeys: false, decimalCodes: false }],
  ['3.3', { nonce: true, timestamp: true, versionBinding: true, temporaryKeys: true, decimalCodes: false }],
])

/** All version texts of v3. */
export const VERSIONS: readonly string[] = [...rows.keys()]
