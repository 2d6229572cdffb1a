// Prints lists that the server gives page by page: one page with a note that more follows, or every row as it comes.
import type { BankGiven } from './bank-command.ts'
import { type Answer, flag, text } from './command.ts'
import { Fault, usageFault } from './fault.ts'
import { answerList, layOutTable } from './output.ts'
import { toQuery } from './query.ts'

/** Options of every command that lists pages. */
export const PAGE_OPTIONS = {
  limit: text('N', 'how many rows at most; without it as many as the server gives at once'),
  cursor: text('CURSOR', 'goes on where a list ended, which says its cursor then'),
  all: flag('every row, page by page, as tables on a terminal and otherwise as lines of JSON'),
} as const

/** The path of a list, and the way from page to page. */
export interface Listing {
  readonly path: string
  /** The parameters other than limit and cursor. */
  readonly query: Readonly<Record<string, string | number | undefined>>
  /** The member of an answer that has the rows. */
  readonly rows: string
  /** The parameter with the start of a page, and the member of an answer with the start of the next page. */
  readonly cursor: readonly ['cursor', 'nextCursor'] | readonly ['before', 'next']
  /** The number of rows that the server gives at once. */
  readonly pageMax: number
  /** True when an answer has more members than its rows, all of which are shown with a page. */
  readonly isPart?: boolean
}

/** Answers one page of a list. With `--all` it prints every page as it comes, so that only one page is in memory. */
export async function answerPages(
  { path, query, rows: member, cursor: [parameter, next], pageMax, isPart = false }: Listing,
  { values: { limit, cursor, all }, terminal, isJson, openBank }: Omit<BankGiven<typeof PAGE_OPTIONS>, 'words' | 'application'>,
): Promise<Answer | undefined> {
  const bank = openBank()
  if (all && limit !== undefined) throw usageFault('--all and --limit exclude each other')
  const read = async (from: string | undefined, count: string | number | undefined) => {
    const json = await bank.call<Page>('GET', path + toQuery({ ...query, limit: count, [parameter]: from }))
    const following = json[next] as string | number | undefined
    return { json, rows: json[member] as readonly Row[], next: following === undefined ? undefined : String(following) }
  }
  if (!all) {
    const page = await read(cursor, limit)
    if (page.next !== undefined) terminal.note(`there are more: --all shows every one, --cursor ${page.next} those that follow`)
    return isPart ? { json: page.json } : answerList(page.json, member)
  }
  const lines = isJson || terminal.columns === undefined
  let isFirst = true
  for (let at = cursor; ; isFirst = false) {
    const page = await read(at, pageMax).catch((error: unknown) => {
      throw error instanceof Fault && !isFirst ? new Fault(error.kind, `${error.message}; --cursor ${at} goes on here`) : error
    })
    // The reader of the output has gone.
    if (!(await terminal.print(lines ? toLines(page.rows) : layOutTable(page.rows)))) return undefined
    if (page.next === undefined) return isFirst && !lines && page.rows.length === 0 ? answerList(page.json, member) : undefined
    at = page.next
  }
}

type Row = Readonly<Record<string, unknown>>
type Page = Readonly<Record<string, unknown>>

const toLines = (rows: readonly Row[]): string => rows.map((row) => `${JSON.stringify(row)}\n`).join('')
