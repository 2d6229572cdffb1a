// The pictures beside the names of pages: strokes on a grid of 24, drawn in the colour of the text.
import { html, type Markup } from './markup.ts'
import type { Section } from './page.ts'

const STROKES: Readonly<Record<Section, string>> = {
  overview: 'M4 13h6V4H4zM14 20h6v-9h-6zM4 20h6v-3H4zM14 7h6V4h-6z',
  registrations: 'M8 3h8a1 1 0 0 1 1 1v16a1 1 0 0 1-1 1H8a1 1 0 0 1-1-1V4a1 1 0 0 1 1-1zM11 18h2',
  operations: 'M9 12l2 2 4-4M12 3l7 3v5c0 5-3 8-7 10-4-2-7-5-7-10V6z',
  inbox: 'M4 6h16v12H4zM4 7l8 6 8-6',
  applications: 'M4 4h7v7H4zM13 4h7v7h-7zM4 13h7v7H4zM16.5 13.5v6M13.5 16.5h6',
  templates: 'M6 3h9l4 4v14H6zM14 3v5h5M9 13h7M9 17h7',
  webhooks: 'M6 15a3 3 0 1 0 3 3h6M12 6a3 3 0 1 0-2 5l-3 5M18 15a3 3 0 1 1-3 3M12 7l4 8',
  certificates: 'M12 4a5 5 0 1 0 0 10 5 5 0 0 0 0-10zM9 13l-1 8 4-2 4 2-1-8',
  config: 'M4 7h9M17 7h3M15 5v4M4 17h3M11 17h9M9 15v4M4 12h3M11 12h9',
  oidc: 'M10 5H5v14h5M14 8l4 4-4 4M18 12H9',
  audit: 'M5 4h14v16H5zM9 9h6M9 13h6M9 17h3',
  credentials: 'M14.5 4a5.5 5.5 0 1 0 0 11 5.5 5.5 0 0 0 0-11zM10.5 13.5L4 20M6 18l2 2M16 8.5v.01',
}

/** Stands beside the name of the page, so that it tells nothing by itself. */
export const icon = (section: Section): Markup =>
  html`<svg class="icon" viewBox="0 0 24 24" aria-hidden="true" focusable="false"><path d="${STROKES[section]}"></path></svg>`
