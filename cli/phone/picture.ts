// Reads the text of a QR code out of a picture.
import { PNG } from 'pngjs'
import { decodeQR } from 'qr/decode.js'
import { explainFault, Fault } from '../fault.ts'
import { readBytes } from '../json-argument.ts'

/** Reads the QR code in the PNG file of --picture. Throws a Fault when the file cannot be read, is no PNG, or has no QR code. */
export function readPicture(path: string): string {
  const { width, height, data } = readPng(path)
  try {
    // The search in a file has no limit.
    return decodeQR({ width, height, data }, { effort: Number.POSITIVE_INFINITY, timeLimit: Number.POSITIVE_INFINITY })
  } catch (error) {
    throw new Fault('refused', `${path} shows no QR code: ${explainFault(error)}`)
  }
}

function readPng(path: string): PNG {
  const file = readBytes('--picture', path)
  try {
    return PNG.sync.read(file)
  } catch (error) {
    throw new Fault('refused', `${path} is no PNG picture: ${explainFault(error)}`)
  }
}
