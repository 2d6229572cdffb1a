// Health check of the image, which has no curl: exit 0 when the server in this container is alive, else 1.
// Kubernetes puts the address of a Service named `pawl` in its place (docs/CONFIG.md).
const port = /^\d+$/.test(process.env.PAWL_PORT) ? process.env.PAWL_PORT : '8080'

try {
  const answer = await fetch(`http://127.0.0.1:${port}/health/live`, { signal: AbortSignal.timeout(3000) })
  process.exit(answer.ok ? 0 : 1)
} catch {
  process.exit(1)
}
