// How a benchmark is measured: one piece of work again and again for about a second, its rate on one line.

const SECONDS = 1

/** Runs `work` for about a second after a warm-up of `warmUp` runs and prints its rate. */
export async function measure(name: string, work: () => unknown, warmUp = 200): Promise<void> {
  for (let i = 0; i < warmUp; i += 1) await work()
  const start = performance.now()
  const busy = process.cpuUsage()
  let count = 0
  while (performance.now() - start < SECONDS * 1000) {
    for (let i = 0; i < 20; i += 1) await work()
    count += 20
  }
  const microseconds = ((performance.now() - start) * 1000) / count
  const { user, system } = process.cpuUsage(busy)
  const [rate, cpu] = [Math.round(1e6 / microseconds), ((user + system) / count).toFixed(1)]
  process.stdout.write(
    `${name.padEnd(60)} ${microseconds.toFixed(1).padStart(8)} µs ${cpu.padStart(8)} µs CPU ${String(rate).padStart(8)} /s\n`,
  )
}
