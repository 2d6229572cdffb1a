// Draws the page of the example: its events, newest first. The page reloads itself every two seconds.
export interface BankEvent {
  readonly at: Date
  readonly userId: string
  readonly what: string
}

/** The whole page as HTML. */
export function drawPage(events: readonly BankEvent[]): string {
  const rows = events.map(
    ({ at, userId, what }) =>
      `<tr><td><time>${at.toISOString().slice(11, 19)}</time></td><td>${escape(userId)}</td><td>${escape(what)}</td></tr>`,
  )
  const list = rows.length > 0 ? `<table>${rows.join('')}</table>` : '<p>Nothing yet. Let a phone call one of the endpoints.</p>'
  return `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width">
<meta http-equiv="refresh" content="2">
<title>The example bank</title>
<style>
:root { color-scheme: light dark; font: 16px/1.5 system-ui, sans-serif }
body { max-width: 46rem; margin: 3rem auto; padding: 0 1rem }
table { border-collapse: collapse; width: 100% }
td { padding: .4rem .8rem .4rem 0; border-top: 1px solid color-mix(in srgb, currentColor 20%, transparent); vertical-align: top }
time { font-variant-numeric: tabular-nums; opacity: .7 }
</style>
</head>
<body>
<h1>The example bank</h1>
<p>What phones did here, newest first.</p>
${list}
</body>
</html>
`
}

const escape = (text: string): string => text.replaceAll(/[&<>"']/g, (character) => `&#${character.codePointAt(0)};`)
