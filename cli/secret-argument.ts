// Reads secrets of a command line. Every user of the machine can see them in the list of processes, so each may come from a file, too.
import { type Terminal, text } from './command.ts'
import { usageFault } from './fault.ts'
import { readFile } from './json-argument.ts'

/** The given secret, or the contents of the file without white space around it. Throws a Fault that names the option of the file, also for both. */
export function readSecret(option: string, given: string | undefined, file: string | undefined): string | undefined {
  if (file === undefined) return given
  if (given !== undefined) throw usageFault(`${option} takes the place of a secret in the command line, and both are given`)
  const secret = readFile(option, file).trim()
  if (secret === '') throw usageFault(`${option}: ${file} is empty`)
  return secret
}

/** Options of commands that take a one-time password. */
export const OTP_FILE = {
  otpFile: text('FILE', 'a file that holds it: then it is in no list of processes; so it is in PAWL_OTP'),
} as const

/** The one-time password of the option, of the file, or of PAWL_OTP, if any. */
export const readOtp = (
  given: string | undefined,
  file: string | undefined,
  { env }: Pick<Terminal, 'env'>,
): string | undefined => readSecret('--otp-file', given, file) ?? (env['PAWL_OTP'] || undefined)
