// Runs `pawl phone offline`.
import type { Answer, Terminal } from '../command.ts'
import { usageFault } from '../fault.ts'
import type { OfflineValues } from './options.ts'
import { readPicture } from './picture.ts'
import { drawFree, drawScanned } from './screen.ts'
import { readUnlock, withPhone } from './session.ts'

/** Makes the one-time password for the QR code of an operation, or of free data. */
export async function offline(given: string | undefined, values: OfflineValues, terminal: Terminal): Promise<Answer> {
  const { picture, biometry, resourceId, body, proximity } = values
  if ((resourceId === undefined) !== (body === undefined)) throw usageFault('--resource-id and --body go together')
  if (proximity && body === undefined) throw usageFault('--proximity needs --resource-id and --body')
  return await withPhone(values, terminal, async ({ phone }) => {
    const read = picture === undefined ? (given ?? (await terminal.readInput()).replace(/\r?\n$/, '')) : readPicture(picture)
    const text = read.replaceAll(String.raw`\n`, '\n')
    if (resourceId !== undefined && body !== undefined) {
      const { data, nonce, totp } = phone.scanFree(text, proximity)
      const drawn = drawFree(data)
      const otp = phone.answerOffline({ resourceId, body, nonce, totp }, await readUnlock(biometry, terminal, drawn))
      return { json: { data, otp, nonce }, text: `${drawn}${otp}\n` }
    }
    const qr = phone.scan(text)
    const drawn = drawScanned(qr)
    const otp = phone.computeOtp(qr, await readUnlock(biometry, terminal, drawn))
    const { operationId, nonce, title, message, data } = qr
    return { json: { operationId, title, message, data, otp, nonce }, text: `${drawn}${otp}\n` }
  })
}
