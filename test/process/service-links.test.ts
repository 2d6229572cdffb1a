// A pod of the shipped manifest without `enableServiceLinks: false`: the process starts with the variables that kubelet makes of the Services.
import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { createServer } from 'node:http'
import { afterAll, expect, test } from 'vitest'
import { runCli } from '../helpers/cli.ts'
import {
  createInstallation,
  DATABASE_KIND,
  endEverything,
  type Environment,
  refusePawl,
  runNode,
  SERVER,
  startNode,
} from '../helpers/process.ts'

const manifest = readFileSync(new URL('../../deploy/kubernetes/pawl.yaml', import.meta.url), 'utf8')

interface Service {
  readonly name: string
  readonly ports: readonly { readonly name: string; readonly port: string }[]
}

const services: readonly Service[] = manifest
  .split(/^---$/m)
  .filter((part) => /^kind: Service$/m.test(part))
  .map((part) => ({
    name: /^metadata: \{ name: ([\w-]+)/m.exec(part)?.[1] ?? '',
    ports: [...part.matchAll(/\{ name: ([\w-]+), port: (\d+)/g)].map(([, name = '', port = '']) => ({ name, port })),
  }))

const toVariable = (name: string): string => name.toUpperCase().replaceAll('-', '_')

/** As kubelet does it (pkg/kubelet/envvars): one Service has a first port, and all ports by number and by name. */
function linksOf({ name, ports }: Service, host: string): Environment {
  const prefix = toVariable(name)
  const [first] = ports
  const env: Record<string, string> = {
    [`${prefix}_SERVICE_HOST`]: host,
    [`${prefix}_SERVICE_PORT`]: first?.port ?? '',
    [`${prefix}_PORT`]: `tcp://${host}:${first?.port}`,
  }
  for (const { name: portName, port } of ports) {
    env[`${prefix}_SERVICE_PORT_${toVariable(portName)}`] = port
    env[`${prefix}_PORT_${port}_TCP`] = `tcp://${host}:${port}`
    env[`${prefix}_PORT_${port}_TCP_PROTO`] = 'tcp'
    env[`${prefix}_PORT_${port}_TCP_PORT`] = port
    env[`${prefix}_PORT_${port}_TCP_ADDR`] = host
  }
  return env
}

const links: Environment = Object.assign({}, ...services.map((service, i) => linksOf(service, `10.96.0.${i + 1}`)))

afterAll(endEverything)

test('the manifest keeps them away, and has the Services of the phones and of the bank', () => {
  expect(manifest).toMatch(/^ {6}enableServiceLinks: false$/m)
  expect(services.map(({ name }) => name)).toEqual(['pawl', 'pawl-bank'])
  expect(Object.keys(links)).toHaveLength(16)
})

test('a start under all of them serves, at the default port', async () => {
  const { env } = await createInstallation(DATABASE_KIND)
  // An address of its own keeps the default port free for others.
  const pawl = startNode([SERVER], { ...env, ...links, PAWL_HOST: '127.83.19.2' })
  await pawl.printed('Ready.')
  expect(pawl.output()).toContain('pawl listens on http://127.83.19.2:8080\n')
  expect((await fetch('http://127.83.19.2:8080/health/ready')).status).toBe(200)
  const { code } = await pawl.end('SIGTERM')
  expect(code).toBe(0)
})

test('what resembles them is refused beside them, and they are not named', async () => {
  const { env } = await createInstallation(DATABASE_KIND)
  const { code, stderr } = await refusePawl(env, links, {
    PAWL_PORT: '0',
    PAWL_SERVICE_NAME: 'pawl',
    PAWL_BANK_PORT_80_TCP_ADDR: '10.9.9.9',
  })
  expect(code).toBe(1)
  expect(stderr.trimEnd().split('\n')).toEqual([
    expect.stringContaining('PAWL_BANK_PORT_80_TCP_ADDR: no such setting'),
    expect.stringContaining('PAWL_SERVICE_NAME: no such setting'),
  ])
})

test('commands ask the default port', async () => {
  const { env } = await createInstallation(DATABASE_KIND)
  const { stdout, stderr } = await runCli(['doctor'], { ...env, ...links, PAWL_HOST: '127.83.19.3' })
  expect(stdout + stderr).toContain('http://127.83.19.3:8080')
  expect(stdout + stderr).not.toContain('tcp:')
})

test('so does the health check of the image', async ({ skip }) => {
  const paths: (string | undefined)[] = []
  const server = createServer(({ url }, response) => {
    paths.push(url)
    response.end()
  })
  server.listen(8080, '127.0.0.1')
  const isFree = await once(server, 'listening').then(
    () => true,
    () => false,
  )
  if (!isFree) skip('another program has the port')
  const { code } = await runNode(['bin/health.mjs'], links).finally(() => server.close())
  expect({ code, paths }).toEqual({ code: 0, paths: ['/health/live'] })
})
