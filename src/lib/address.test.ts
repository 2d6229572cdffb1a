// Tests addresses and ranges of both families, and which addresses count as one source.
import { expect, test } from 'vitest'
import { createRanges, isAddressOrRange, networkOf, sourceOf } from './address.ts'

test.each(['10.0.0.1', '10.0.0.0/8', '0.0.0.0/1', '::1', 'fd00::/8', '2001:db8::/128', '::ffff:10.0.0.1', '::ffff:10.0.0.0/104'])(
  '%s is one',
  (text) => {
    expect(isAddressOrRange(text)).toBe(true)
  },
)

test.each([
  '',
  '10.0.0',
  '10.0.0.0/0',
  '::/0',
  '10.0.0.0/33',
  '::/129',
  '10.0.0.0/8/8',
  '10.0.0.0/08',
  'fe80::1%eth0',
  'bank.example',
  '10.0.0.0/',
  // All of IPv4, and more than that.
  '::ffff:0:0/96',
  '::ffff:10.0.0.0/95',
  '::ffff:10.0.0.0/129',
])('%s is none', (text) => {
  expect(isAddressOrRange(text)).toBe(false)
})

test.each([
  ['10.1.2.3', ['10.0.0.0/8'], true],
  ['11.1.2.3', ['10.0.0.0/8'], false],
  ['::ffff:10.1.2.3', ['10.0.0.0/8'], true],
  ['10.1.2.3', ['192.168.1.1', '10.1.2.3'], true],
  ['10.1.2.4', ['192.168.1.1', '10.1.2.3'], false],
  ['fd00::1', ['fd00::/8'], true],
  ['fe80::1%eth0', ['fe80::/10'], true],
  ['fe80::1', ['fd00::/8', '10.0.0.0/8'], false],
  // All IPv4 addresses have this form inside IPv6.
  ['10.1.2.3', ['::ffff:0:0/96'], false],
  ['10.1.2.3', ['::ffff:10.0.0.0/104'], true],
  ['::ffff:10.1.2.3', ['::ffff:a00:0/104'], true],
  ['11.1.2.3', ['::ffff:10.0.0.0/104'], false],
  ['10.1.2.3', ['::ffff:10.1.2.3'], true],
  ['10.1.2.4', ['::ffff:10.1.2.3'], false],
  ['10.1.2.3', ['::/1'], false],
  ['10.1.2.3', [], false],
  ['unknown', ['10.0.0.0/8'], false],
])('%s among %s: %s', (ip, ranges, is) => {
  expect(createRanges(ranges)(ip)).toBe(is)
})

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
