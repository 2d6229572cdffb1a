// Checks the health of a container, whose image has no curl: exit code 0 when its server is alive, else 1.
// Kubernetes sets PAWL_PORT to an address when a Service is named `pawl` (docs/CONFIG.md).
const port = /^\d+$/.test(process.env.PAWL_PORT) ? process.env.PAWL_PORT : '8080'
// A server that listens on every address is reached by the loopback one, and another at its own.
const { PAWL_HOST: host } = process.env
const isEvery = !host || host === '0.0.0.0' || host === '::'
const name = isEvery ? '127.0.0.1' : host.includes(':') ? `[${host}]` : host

try {
  const answer = await fetch(`http://${name}:${port}/health/live`, { signal: AbortSignal.timeout(3000) })
  process.exit(answer.ok ? 0 : 1)
} catch {
  process.exit(1)
}
