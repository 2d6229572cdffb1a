// Checks the health of a container, whose image has no curl: exit code 0 when its server is alive, else 1.
// Kubernetes sets PAWL_PORT to an address when a Service is named `pawl` (docs/CONFIG.md).
const port = /^\d+$/.test(process.env.PAWL_PORT) ? process.env.PAWL_PORT : '8080'

try {
  const answer = await fetch(`http://127.0.0.1:${port}/health/live`, { signal: AbortSignal.timeout(3000) })
  process.exit(answer.ok ? 0 : 1)
} catch {
  process.exit(1)
}
