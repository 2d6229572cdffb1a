// Declares pawl phone: phones in the terminal. They work with any server of the protocol.
import { command, flag, type Noun, text } from '../command.ts'
import { ALL, BIND, BIOMETRY, CALL, OFFLINE, OPTIONS, SIGN, STORE } from '../phone/options.ts'

// Only commands that need the cryptography of phones load it.
const work = () => import('../phone/commands.ts')

const bind = command({
  name: 'bind',
  summary: 'Binds a new phone by the code of a registration',
  more:
    'The passphrase of the file and the password of the phone are asked for, or stand in PAWL_PHONE_PASSPHRASE and PAWL_PHONE_PASSWORD. ' +
    'With --oidc the address to log in at is shown, and the one at which the browser ends is asked for, or read from stdin.',
  words: { '[code]': 'the activation code, or the whole text of the QR code, whose signature is then checked' },
  options: BIND,
  examples: [
    'phone bind 4SYFV-BCW6R-K3OCA-PGBWA --app my-app --name alice',
    'phone bind --picture qr.png --sdk-config AW… --algorithm EC_P384_ML_L3 --phones-url https://phones.bank.example',
    'phone bind --oidc web-bank --app my-app',
    'phone bind 4SYFV-BCW6R-K3OCA-PGBWA --app-key … --app-secret … --master-key … --protocol 3.1 --phones-url https://other.example/enrollment-server',
  ],
  run: async ({ words: [code], values, terminal }) => (await work()).bind(code, values, terminal),
})

const handOver = command({
  name: 'hand-over',
  summary: 'Asks for a code that binds another application of the bank, and makes its one-time password',
  more: 'Give both to pawl phone bind within five minutes. The bank configures whether this phone is then removed: pawl app change --move-to, --spawn.',
  words: { '<application>': 'the id of the other application' },
  options: { ...OPTIONS, ...BIOMETRY },
  examples: ['phone hand-over new-app --phone alice'],
  run: async ({ words: [application = ''], values, terminal }) => (await work()).handOver(application, values, terminal),
})

const phones = command({
  name: 'phones',
  summary: 'Lists the phones of the file',
  options: STORE,
  examples: ['phone phones'],
  run: async ({ values, terminal }) => (await work()).listPhones(values, terminal),
})

const list = command({
  name: 'list',
  summary: 'Shows the operations that wait, as a phone would',
  options: { ...OPTIONS, language: text('CODE', 'the language of the texts: two small letters') },
  examples: ['phone list', 'phone list --phone alice --language en'],
  run: async ({ values, terminal }) => (await work()).list(values, terminal),
})

const OPERATION = { '[operation]': 'its id; may be missing when only one waits' } as const

const approve = command({
  name: 'approve',
  summary: 'Approves an operation that waits',
  words: OPERATION,
  options: { ...OPTIONS, ...ALL, ...BIOMETRY },
  examples: ['phone approve', 'phone approve 0190b5a4-… --phone alice', 'phone approve --all'],
  run: async ({ words: [id], values, terminal }) => (await work()).approve(id, values, terminal),
})

const reject = command({
  name: 'reject',
  summary: 'Rejects an operation that waits',
  words: OPERATION,
  options: { ...OPTIONS, ...ALL, reason: text('TEXT', 'why') },
  examples: ['phone reject 0190b5a4-… --reason UNEXPECTED_OPERATION'],
  run: async ({ words: [id], values, terminal }) => (await work()).reject(id, values, terminal),
})

const offline = command({
  name: 'offline',
  summary: 'Computes the one-time password for the QR code of an operation or of free data, without a connection',
  more: 'With --resource-id and --body the text is free data of the bank (docs/OFFLINE.md), else it is an operation.',
  words: { '[text]': 'the text of the QR code, lines apart by \\n; without it and without a picture it is read from stdin' },
  options: OFFLINE,
  examples: [
    'phone offline <qr.txt',
    'phone offline --picture qr.png',
    `phone offline --resource-id /cash --body 'cashier-7&200 EUR' <qr.txt`,
  ],
  run: async ({ words: [given], values, terminal }) => (await import('../phone/offline.ts')).offline(given, values, terminal),
})

const sign = command({
  name: 'sign',
  summary: 'Signs a request, and prints it as a curl command that works once',
  more: 'Without a path, the request is for signature/validate, or auth/validate in 4.0, where a server checks a code over any body.',
  options: SIGN,
  examples: [
    `phone sign --body '{"amount":"100"}' --send`,
    'phone sign --path /pa/v3/token/remove --resource-id /pa/token/remove',
  ],
  run: async ({ values, terminal }) => (await work()).sign(values, terminal),
})

const call = command({
  name: 'call',
  summary: "Calls an endpoint of the bank as the bank's app would",
  more: 'With --resource-id the request is signed, with --encrypt it is encrypted, with both it is both. A token is for reads.',
  words: { '<url>': 'the whole address of the endpoint' },
  options: CALL,
  examples: [
    `phone call http://127.0.0.1:8090/login --resource-id /login --body '{}'`,
    'phone call http://127.0.0.1:8090/accounts --token',
    `phone call http://127.0.0.1:8090/limits --resource-id /limits --encrypt --body '{"daily":500}'`,
  ],
  run: async ({ words: [target = ''], values, terminal }) => (await work()).call(target, values, terminal),
})

const status = command({
  name: 'status',
  summary: 'Asks the server for the state of the activation, its failed attempts, and the version that it may move to',
  more: 'Where the counter of the server is ahead by less than the look-ahead, as after a restore, the phone goes on from there; not one of 3.0, or of 4.0 in Svc.',
  options: OPTIONS,
  examples: ['phone status', 'phone status --phone alice --json'],
  run: async ({ values, terminal }) => (await work()).status(values, terminal),
})

const token = command({
  name: 'token',
  summary: 'Prints the header of one request with the token of the phone; a missing token is made',
  options: { ...OPTIONS, remove: flag('removes the tokens at the server instead') },
  examples: ['phone token', 'phone token --remove'],
  run: async ({ values, terminal }) => (await work()).token(values, terminal),
})

const rename = command({
  name: 'rename',
  summary: 'Gives the activation another name at the server',
  words: { '<name>': 'the name' },
  options: OPTIONS,
  examples: ["phone rename 'Phone of Alice'"],
  run: async ({ words: [name = ''], values, terminal }) => (await work()).rename(name, values, terminal),
})

const password = command({
  name: 'password',
  summary: 'Changes the password of the phone, once the server has said that the old one is right',
  more: 'Both are asked for, or stand in PAWL_PHONE_PASSWORD and PAWL_PHONE_NEW_PASSWORD.',
  options: OPTIONS,
  examples: ['phone password'],
  run: async ({ values, terminal }) => (await work()).password(values, terminal),
})

const biometry = command({
  name: 'biometry',
  summary: 'Switches biometry on or off',
  words: { '<state>': 'on or off' },
  options: OPTIONS,
  examples: ['phone biometry on'],
  run: async ({ words: [state = ''], values, terminal }) => (await work()).biometry(state, values, terminal),
})

const upgrade = command({
  name: 'upgrade',
  summary: 'Moves a phone of 3.3 to 4.0',
  more: 'It may be repeated when an answer was lost.',
  options: { ...OPTIONS, algorithm: text('NAME', 'EC_P384, EC_P384_ML_L3, which is the default, or EC_P384_ML_L5') },
  examples: ['phone upgrade --algorithm EC_P384'],
  run: async ({ values, terminal }) => (await work()).upgrade(values, terminal),
})

const remove = command({
  name: 'remove',
  summary: 'Ends the activation at the server, and forgets the phone',
  options: { ...OPTIONS, local: flag('forgets it here alone') },
  examples: ['phone remove --phone alice', 'phone remove --local'],
  run: async ({ values, terminal }) => (await work()).remove(values, terminal),
})

export const phone: Noun = {
  name: 'phone',
  summary: 'Phones of this terminal, of protocol 3.0 to 4.0: the other side of an approval',
  commands: [
    bind,
    handOver,
    phones,
    list,
    approve,
    reject,
    offline,
    sign,
    call,
    status,
    token,
    rename,
    password,
    biometry,
    upgrade,
    remove,
  ],
}
