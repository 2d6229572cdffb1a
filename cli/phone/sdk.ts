// Parses an SDK's configuration text into the values that are compiled into an app.
import type { HandsetApp } from '../../phone/handset.ts'
import { readSdkConfiguration } from '../../phone/v4/state.ts'
import { usageFault } from '../fault.ts'

/** Parses `mobileSdkConfig`. Throws a Fault for any other text. */
export function readSdk(mobileSdkConfig: string): HandsetApp {
  try {
    const { applicationKey, applicationSecret, p256 } = readSdkConfiguration(mobileSdkConfig)
    const masterPublicKey = p256 && Buffer.from(p256).toString('base64')
    return { applicationKey, applicationSecret, mobileSdkConfig, ...(masterPublicKey !== undefined && { masterPublicKey }) }
  } catch (error) {
    throw usageFault(`the text for SDKs is none: ${error instanceof Error ? error.message : String(error)}`)
  }
}
