// Lists the settings of pushes that pawl sends itself (mobile-token §7.1). A provider without credentials is off.
import { utf8 } from '../lib/bytes.ts'
import { JsonFault, parseForeignObject } from '../lib/json.ts'
import { boolean, httpsUrl, type Kind, matching, type Settings } from './kinds.ts'

/** Members of a service account of Google that pawl needs to send pushes. */
interface ServiceAccount {
  readonly projectId: string
  readonly clientEmail: string
  /** PEM, PKCS #8. */
  readonly privateKey: string
  readonly tokenUrl: string
}

/** Address of a push server without a path, because pawl appends the paths of Apple or Google to it. */
const pushUrl: Kind<string> = {
  label: 'https URL without a path',
  parse(value) {
    const parsed = httpsUrl.parse(value)
    if ('problem' in parsed) return parsed
    const { pathname, search } = new URL(value)
    return pathname === '/' && search === '' ? parsed : { problem: 'has a path or a query: give https://host:port' }
  },
}

const appleId = matching('10 letters and digits', /^[A-Z0-9]{10}$/, '10 capital letters and digits')

export const PUSH_SETTINGS = {
  apnsKeyId: {
    name: 'PAWL_APNS_KEY_ID',
    kind: appleId,
    description: 'Id of PAWL_APNS_KEY, as Apple shows it beside the key.',
  },
  apnsTeamId: {
    name: 'PAWL_APNS_TEAM_ID',
    kind: appleId,
    description: "Id of the team that the key is of, as Apple shows it in the account's membership.",
  },
  apnsTopic: {
    name: 'PAWL_APNS_TOPIC',
    kind: matching('bundle id', /^[\w.-]{1,255}$/, 'the bundle id of an app'),
    description: 'Bundle id of the app that gets the pushes, for example `com.example.bank`.',
  },
  apnsUrl: {
    name: 'PAWL_APNS_URL',
    kind: pushUrl,
    default: 'https://api.push.apple.com',
    description: 'Where pushes go whose token is of no environment, or of `production`.',
  },
  apnsDevelopmentUrl: {
    name: 'PAWL_APNS_DEVELOPMENT_URL',
    kind: pushUrl,
    default: 'https://api.sandbox.push.apple.com',
    description: 'Where pushes go whose token is of `development`.',
  },
  apnsLocalized: {
    name: 'PAWL_APNS_LOCALIZED',
    kind: boolean,
    default: 'false',
    description:
      'An alert has a `loc-key` instead of an English text: the app has texts for `mtoken.operationInit`, `mtoken.operationFinished` and ' +
      '`mtoken.inboxMessage.new` in its `Localizable.strings`.',
  },
  fcmUrl: {
    name: 'PAWL_FCM_URL',
    kind: pushUrl,
    default: 'https://fcm.googleapis.com',
    description: 'Where pushes for Android go.',
  },
} satisfies Settings

// The values of these kinds are secrets, so problems do not repeat them. A key is PKCS #8 in PEM.
const apnsKey: Kind<string> = {
  label: 'PEM of a private key',
  parse: (value) => (isPrivateKey(value) ? { value: value.trim() } : { problem: 'not the text of a .p8 file from Apple' }),
}

const serviceAccount: Kind<ServiceAccount> = {
  label: 'JSON of a service account',
  parse(value) {
    try {
      const account = readAccount(value)
      if (account !== undefined) return { value: account }
    } catch (error) {
      if (!(error instanceof JsonFault)) throw error
    }
    return { problem: 'not the JSON file of a service account' }
  },
}

/** Reads the JSON of a service account. Undefined when a necessary member is missing or malformed. Throws JsonFault for a text that is not JSON. */
function readAccount(text: string): ServiceAccount | undefined {
  const {
    project_id: projectId,
    client_email: clientEmail,
    private_key: privateKey,
    token_uri: tokenUrl = 'https://oauth2.googleapis.com/token',
  } = parseForeignObject(utf8(text))
  if (typeof projectId !== 'string' || !/^[a-z0-9:.-]{1,100}$/.test(projectId)) return undefined
  if (typeof clientEmail !== 'string' || !/^[\x21-\x7E]{1,320}$/.test(clientEmail)) return undefined
  if (typeof privateKey !== 'string' || !isPrivateKey(privateKey)) return undefined
  if (typeof tokenUrl !== 'string' || 'problem' in httpsUrl.parse(tokenUrl)) return undefined
  return { projectId, clientEmail, privateKey, tokenUrl }
}

const isPrivateKey = (text: string): boolean =>
  /^\s*-----BEGIN PRIVATE KEY-----[A-Za-z0-9+/=\s]{32,8192}-----END PRIVATE KEY-----\s*$/.test(text)

export const PUSH_SECRET_SETTINGS = {
  apnsKey: {
    name: 'PAWL_APNS_KEY',
    kind: apnsKey,
    description:
      'Key for pushes to iPhones, the text of the `.p8` file from Apple. Needs PAWL_APNS_KEY_ID, PAWL_APNS_TEAM_ID and PAWL_APNS_TOPIC. ' +
      'docs/PUSH.md says step by step how to set it.',
  },
  fcmServiceAccount: {
    name: 'PAWL_FCM_SERVICE_ACCOUNT',
    kind: serviceAccount,
    description: 'Service account for pushes to Android, the text of its JSON file from Google. docs/PUSH.md says how to set it.',
  },
} satisfies Settings
