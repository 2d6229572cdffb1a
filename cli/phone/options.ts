// Declares the options of pawl phone, apart from those that a single command has as its only one.
import { BANK_OPTIONS } from '../bank.ts'
import { flag, text, type Values } from '../command.ts'

export const STORE = {
  store: text(
    'FILE',
    'where phones are kept; by default PAWL_PHONES, or pawl/phones.json in the directory for data of this account',
  ),
  insecureStore: flag('the file may be without a passphrase: for tests'),
} as const
export const OPTIONS = { ...STORE, phone: text('NAME', 'which phone, where the file has several') } as const
export const BIOMETRY = { biometry: flag('by biometry instead of the password') } as const
const PICTURE = { picture: text('FILE', 'a PNG picture of the QR code') } as const
export const ALL = { all: flag('all that wait') } as const

export const BIND = {
  ...STORE,
  ...PICTURE,
  oidc: text('PROVIDER', 'instead of a code: by a login at this OpenID provider of the bank'),
  name: text('NAME', 'how the phone is called here and at the bank'),
  otp: text('TEXT', 'the one-time password of the registration, where it demands one'),
  phonesUrl: text(
    'URL',
    'where phones reach the server, with what stands before /pa; by default what the server says with --app, else this machine at PAWL_PORT or 8080',
  ),
  operationsUrl: text('URL', 'the same for /api, where that is another one'),
  protocol: text('VERSION', '3.0, 3.1, 3.2, 3.3 or 4.0; by default 3.3, and 4.0 with --algorithm'),
  algorithm: text('NAME', 'of 4.0: EC_P384, EC_P384_ML_L3 or EC_P384_ML_L5'),
  dialect: text('NAME', 'powerauth, which is the default, or svc: how headers are spelled'),
  sdkConfig: text('TEXT', 'what is compiled into the app, as pawl app sdk-config prints it'),
  appKey: text('BASE64', 'the same for 3.x in three values: application key,'),
  appSecret: text('BASE64', 'application secret,'),
  masterKey: text('BASE64', 'and public master key of P-256'),
  app: text('ID', 'the application of a server of pawl, which is asked for these values with --url and --admin'),
  ...BANK_OPTIONS,
} as const

export const OFFLINE = {
  ...OPTIONS,
  ...PICTURE,
  ...BIOMETRY,
  resourceId: text('ID', 'of free data: what the code is for'),
  body: text('TEXT', 'of free data: what the code covers'),
  proximity: flag('of free data: the text has the password of a proximity check'),
} as const

export const SIGN = {
  ...OPTIONS,
  body: text('TEXT', 'what is signed; by default {}'),
  method: text('NAME', 'by default POST'),
  path: text('PATH', 'of the request, below the URL of the server; needs --resource-id'),
  query: text('TEXT', 'of the request, which a GET signs instead of a body'),
  resourceId: text('ID', 'what the endpoint is called within the code'),
  possession: flag('with possession alone'),
  ...BIOMETRY,
  send: flag('sends it and prints the answer'),
} as const

export const CALL = {
  ...OPTIONS,
  body: text('JSON', 'what is sent'),
  method: text('NAME', 'by default POST with a body, else GET'),
  resourceId: text('ID', 'what the endpoint is called within the code'),
  encrypt: flag('sends an envelope, and opens that of the answer'),
  token: flag('sends the header of a token instead of a code'),
  possession: flag('with possession alone'),
  ...BIOMETRY,
} as const

/** Values of STORE, or of OPTIONS. */
export type PhoneValues = Values<typeof STORE> & Partial<Values<typeof OPTIONS>>
export type DecideValues = Values<typeof OPTIONS & typeof ALL>
export type BindValues = Values<typeof BIND>
export type OfflineValues = Values<typeof OFFLINE>
export type SignValues = Values<typeof SIGN>
export type CallValues = Values<typeof CALL>
