// The alerts as Prometheus itself reads them: each fires for series that stand for its cause, and is silent for healthy ones.
import { execFileSync } from 'node:child_process'
import { existsSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { describe, expect, test } from 'vitest'

const PROMTOOL = '/usr/bin/promtool'
const folder = fileURLToPath(new URL('../../deploy/prometheus', import.meta.url))
const promtool = (...words: string[]): string => execFileSync(PROMTOOL, words, { cwd: folder, encoding: 'utf8' })

describe.skipIf(!existsSync(PROMTOOL))(`the alerts (needs ${PROMTOOL}, of the package prometheus)`, () => {
  test('are rules that Prometheus takes', () => {
    expect(promtool('check', 'rules', 'pawl.rules.yml')).toMatch(/SUCCESS: \d+ rules found/)
  })

  test('fire for their causes and are silent without', () => {
    expect(promtool('test', 'rules', 'pawl.test.yml')).toContain('SUCCESS')
  })
})
