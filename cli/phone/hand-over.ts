// Runs pawl phone hand-over: the phone asks for a code that binds another application of the bank (mobile-token §9).
import { randomBytes } from 'node:crypto'
import type { Answer, Terminal } from '../command.ts'
import type { PhoneValues } from './options.ts'
import { readUnlock, withPhone } from './session.ts'

/** Asks for a code for another application, with an OTP of its own. */
export const handOver = (
  applicationId: string,
  values: PhoneValues & { biometry: boolean },
  terminal: Terminal,
): Promise<Answer> =>
  withPhone(values, terminal, async ({ phone }) => {
    const otp = randomBytes(16).toString('hex')
    const code = await phone.askForCode(applicationId, otp, await readUnlock(values.biometry, terminal))
    return {
      json: { application: applicationId, code, otp },
      text: `Within five minutes: pawl phone bind '${code}' --otp ${otp} --app ${applicationId} --name NAME\n`,
    }
  })
