// Which addresses count as one source.
import { expect, test } from 'vitest'
import { networkOf, sourceOf } from './source.ts'

test.each([
  ['192.0.2.7', '192.0.2.7'],
  ['::ffff:192.0.2.7', '192.0.2.7'],
  ['::FFFF:192.0.2.7', '192.0.2.7'],
  ['2001:db8:1:2:3:4:5:6', '2001:db8:1:2::/64'],
  ['2001:0DB8:0001:0002::9', '2001:db8:1:2::/64'],
  ['2001:db8:1::', '2001:db8:1:0::/64'],
  ['2001:db8::1:2:3:4:5', '2001:db8:0:1::/64'],
  ['fe80::1%eth0', 'fe80:0:0:0::/64'],
  ['::1', '0:0:0:0::/64'],
  ['::', '0:0:0:0::/64'],
  ['not an address', 'unknown'],
  ['', 'unknown'],
])('%s counts as %s', (ip, source) => {
  expect(sourceOf(ip)).toBe(source)
})

test.each([
  ['192.0.2.7', '192.0.2.0/24'],
  ['192.0.2.100', '192.0.2.0/24'],
  ['::ffff:192.0.2.7', '192.0.2.0/24'],
  ['2001:db8:1:2:3:4:5:6', '2001:db8:1:2::/64'],
  ['', 'unknown'],
])('%s is of the network %s', (ip, network) => {
  expect(networkOf(ip)).toBe(network)
})
