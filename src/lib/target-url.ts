// Addresses that administrators give pawl to send something to, judged before a name of theirs is looked up.
import { isIP } from 'node:net'
import { isPublicAddress } from './outbound.ts'

/** What the operator allows: PAWL_WEBHOOK_ALLOW_HTTP, PAWL_WEBHOOK_ALLOW_PRIVATE_ADDRESSES. */
export interface TargetRules {
  readonly webhookAllowHttp: boolean
  readonly webhookAllowPrivateAddresses: boolean
}

/** What is wrong with an address; undefined when nothing is. Names are looked up when something is sent. */
export function findTargetProblem(text: string, rules: TargetRules): string | undefined {
  if (/[\s\p{Cc}]/u.test(text) || !URL.canParse(text)) return 'must be a URL'
  const { protocol, username, password, hash, hostname } = new URL(text)
  const isHttp = protocol === 'http:'
  if (protocol !== 'https:' && !(isHttp && rules.webhookAllowHttp)) return 'must be a https URL'
  if (username !== '' || password !== '') return 'must not contain credentials'
  if (hash !== '') return 'must not contain a fragment'
  const host = hostname.replace(/^\[(.*)\]$/, '$1')
  const isInner = (isIP(host) > 0 && !isPublicAddress(host)) || /(^|\.)localhost\.?$/.test(host)
  return isInner && !rules.webhookAllowPrivateAddresses ? 'must not lead to a private address' : undefined
}
