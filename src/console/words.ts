// Turns names of the contract into words for people: states, reasons, events of phones, changes of administrators.

/** Writes `PENDING_COMMIT` as `Pending commit`. */
export const sayState = (state: string): string => {
  const words = state.toLowerCase().replaceAll('_', ' ')
  return words.charAt(0).toUpperCase() + words.slice(1)
}

/** Writes the name `sourceAmount` as `Source amount`. */
export const sayMember = (name: string): string => sayState(name.replaceAll(/([A-Z])/g, '_$1'))

/** Writes the reason `UNEXPECTED_OPERATION` as `Unexpected operation`. A text of a person stays unchanged. */
export const sayReason = (reason: string): string =>
  REASONS.get(reason) ?? (MACHINE_WORD.test(reason) ? sayState(reason) : reason)

/** Writes `1 message`, `2 messages`. */
export const sayCount = (count: number, noun: string): string => `${count} ${noun}${count === 1 ? '' : 's'}`

/** Names an event of the audit log of phones (cloud §7). */
export const sayEvent = (eventType: string): string => REASONS.get(eventType) ?? sayState(eventType)

/** Words all in capitals or all in small letters, joined by underscores if there are several. */
const MACHINE_WORD = /^(?:[A-Z][A-Z0-9]+(?:_[A-Z0-9]+)*|[a-z][a-z0-9]*(?:_[a-z0-9]+)+)$/

const REASONS: ReadonlyMap<string, string> = new Map(
  Object.entries({
    signature_ok: 'Right code',
    signature_does_not_match: 'Wrong code',
    activation_invalid_state: 'Activation not active',
    activation_invalid_state_ctr_mismatch: 'Code of another protocol',
    activation_invalid_application: 'Unknown application or version',
    protocol_version_too_low: 'Protocol too old',
    biometry_disabled: 'Biometry not set up',
    device_signature_ok: 'Right device signature',
    device_signature_invalid: 'Wrong device signature',
    offline_code_ok: 'Right offline code',
    offline_code_invalid: 'Wrong offline code',
    envelope_opened: 'Envelope opened',
    envelope_keys_derived: 'Keys of an envelope given',
    oidc_activation: 'Bound by a login',
    SIGNATURE_WRONG: 'Wrong signature',
    KEYS_MISSING: 'Not signed by every key',
    STATE: 'Activation not active',
    MAX_FAILED_ATTEMPTS: 'Too many wrong codes',
  }),
)

/** Names the change of an administrator, to precede its target: `PUT /admin/templates/{name}` as `Set`. */
export function sayAction(action: string): string {
  const said = ACTIONS.get(action)
  if (said !== undefined) return said
  const [method = ''] = action.split(' ')
  return METHODS.get(method) ?? sayState(action)
}

const METHODS: ReadonlyMap<string, string> = new Map(
  Object.entries({ POST: 'Created', PUT: 'Set', PATCH: 'Changed', DELETE: 'Removed' }),
)

const ACTIONS: ReadonlyMap<string, string> = new Map(
  Object.entries({
    'POST /admin/users/{name}/password': 'New password of',
    'PUT /admin/users/{name}/allowed-addresses': 'Set the addresses of',
    'PUT /admin/users/{name}/certificates': 'Set the client certificates of',
    'POST /admin/applications/{id}/registrations/commit': 'Committed',
    'POST /admin/applications/{id}/versions': 'Added a version to',
    'PATCH /admin/applications/{id}/versions/{name}': 'Switched a version of',
    'PUT /admin/activations/{id}/flags': 'Set the flags of',
    'POST /admin/apps/{name}/certificates/auto': 'Pinned what the server shows:',
    'POST /admin/apps/{name}/certificates/pem': 'Pinned from a file:',
    'POST /admin/apps/{name}/certificates/fingerprint': 'Pinned by fingerprint:',
    'DELETE /admin/apps/{name}/certificates': 'Unpinned:',
    'DELETE /admin/apps/{name}/domains': 'Removed a domain:',
    'POST /admin/webhooks/{id}/deliveries': 'Sent again:',
    'POST /admin/webhooks/{id}/secret': 'New secret of',
    'POST /admin/webhooks/{id}/test': 'Tested',
    'console sign-in': 'Signed in:',
    'console sign-out': 'Signed out:',
  }),
)
