// An activation as bytes, for a memory of many: it takes less than half of what the row does as an object (docs/decisions/0014-memory.md).
import { concatWithSizes, fromUtf8, splitBySizes, utf8 } from '../../lib/bytes.ts'
import { givenColumns, REQUEST_COLUMNS, STATUS_COLUMNS } from '../activation/columns.ts'
import type { ActivationRow } from '../activation/find.ts'

type PackedRow = Omit<ActivationRow, 'isUpgradePending'>

/**
 * Packs an activation but for its identifier and the server's private key, as it is and not as an upgrade will make it: three parts with their
 * sizes. They are JSON of an array, with times as milliseconds, and two sealed values, still sealed; one that is null is empty.
 */
export function packActivation(activation: PackedRow): Uint8Array {
  const { masterSecret, ctrData } = activation
  const cells = CELLS.map(({ name }) => toCell(activation[name]))
  return concatWithSizes(utf8(JSON.stringify(cells)), masterSecret ?? undefined, ctrData ?? undefined)
}

/** The activation of this identifier that was packed; what is sealed in it shares memory with `packed`. */
export function unpackActivation(activationId: string, packed: Buffer): ActivationRow {
  const [json, masterSecret, ctrData] = splitBySizes(packed) as [Buffer, Buffer, Buffer]
  const cells = JSON.parse(fromUtf8(json)) as ReturnType<typeof toCell>[]
  const row: Record<string, unknown> = { ...EMPTY, activationId, masterSecret: orNull(masterSecret), ctrData: orNull(ctrData) }
  CELLS.forEach(({ name, isTime }, i) => {
    row[name] = isTime ? fromTime(cells[i]) : cells[i]
  })
  return row as unknown as ActivationRow
}

/** What is packed into the array, in its order. */
const CELLS = Object.entries({
  ...givenColumns(STATUS_COLUMNS),
  ...givenColumns(REQUEST_COLUMNS),
  blockExpiresAt: 'timestamptz',
  isBlockOver: 'boolean',
})
  .filter(([name, type]) => type !== 'bytea' && name !== 'activationId')
  .map(([name, type]) => ({ name: name as Exclude<keyof PackedRow, 'serverPrivateKey'>, isTime: type === 'timestamptz' }))

/** All members at once: an object to which they are added one by one takes half as long again. */
const EMPTY = Object.fromEntries(CELLS.map(({ name }) => [name, null]))

const toCell = (value: unknown): unknown => (value instanceof Date ? value.getTime() : value)
const fromTime = (cell: unknown): Date | null => (cell === null ? null : new Date(Number(cell)))

// What is sealed is never empty.
const orNull = (bytes: Buffer): Buffer | null => (bytes.length === 0 ? null : bytes)
