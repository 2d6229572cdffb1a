// Lists of records: a table on a desk, cards of two lines on a phone.
import { html, type Markup, type Value } from './markup.ts'

/**
 * A column. On a phone the first one is the line of the card, `side` stands at its end, `wide` has a line of its own, `away` is left out, and
 * all others share the second line.
 */
export type Column = string | readonly [label: string, place: 'side' | 'wide' | 'away']

/** Each row has as many cells as there are columns. What stands below the first cell's own line is for a desk. */
export function table(caption: string, columns: readonly Column[], rows: readonly (readonly Value[])[]): Markup {
  const shown = columns.map((column) => (typeof column === 'string' ? ([column, undefined] as const) : column))
  return html`<table class="rows">
    <caption class="hidden">${caption}</caption>
    <thead><tr>${shown.map(([label]) => html`<th scope="col">${label}</th>`)}</tr></thead>
    <tbody>${rows.map(
      (cells) =>
        html`<tr>${cells.map((cell, i) => html`<td${shown[i]?.[1] !== undefined && html` class="is-${shown[i][1]}"`} data-label="${shown[i]?.[0] ?? ''}">${cell}</td>`)}</tr>`,
    )}</tbody>
  </table>`
}
