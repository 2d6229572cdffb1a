// The metrics of several processes behind one port in one answer, as Prometheus would have them of several targets.

/** The processes that share a port, as one of them sees them. */
export interface Peers {
  /** Label of everything that this one counts. */
  readonly worker: string
  /** The text of each, of this one too. */
  readonly collect: () => Promise<readonly string[]>
  readonly onAsked: (render: () => Promise<string>) => void
}

/** One exposition of several: the series of a metric stand together below its one description (text format 0.0.4). */
export function mergeExpositions(texts: readonly string[]): string {
  const metrics = new Map<string, string[]>()
  for (const block of texts.flatMap((text) => text.trimEnd().split('\n\n'))) {
    const [help = '', type = '', ...series] = block.split('\n')
    const description = `${help}\n${type}`
    const known = metrics.get(description)
    if (known === undefined) metrics.set(description, series)
    else known.push(...series)
  }
  return `${[...metrics].map(([description, series]) => [description, ...series].join('\n')).join('\n\n')}\n`
}
