// One difference between a set-up file and a server, and the change that removes it.
import { isDeepStrictEqual } from 'node:util'
import type { Bank } from '../bank.ts'
import type { FaultKind } from '../fault.ts'
import { SETS } from './schema.ts'
import type { Path } from './yaml.ts'

/** Shown this once. */
export interface Secret {
  /** `user bank`. */
  readonly what: string
  readonly name: 'password' | 'secret'
  readonly value: string
}

export interface Difference {
  readonly name: string
  /** The value before; undefined if there is none. */
  readonly before: unknown
  readonly after: unknown
}

export interface Step {
  /** `+` makes it, `~` changes it, `-` removes it. */
  readonly sign: '+' | '~' | '-'
  /** `version 2.0 of my-app`. */
  readonly what: string
  /** The place in the file. */
  readonly path: Path
  readonly differences: readonly Difference[]
  /** The advice when it may have been made, but the answer with its secret was lost. */
  readonly lost?: string
  readonly run: (bank: Bank, tell: (secret: Secret) => Promise<void>) => Promise<unknown>
}

/** The result of `run` when somebody else was faster. */
export const MADE_BY_ANOTHER = Symbol('made by another')

/** A difference that no call removes. */
export interface Conflict {
  readonly path: Path
  readonly kind: FaultKind
  readonly problem: string
  /** Somebody who applies a file at the same time may be about to remove it. */
  readonly mayPass?: boolean
}

export interface Plan {
  readonly steps: readonly Step[]
  readonly conflicts: readonly Conflict[]
  /** Things of the server that the file does not name, and that stay. */
  readonly notInFile: readonly Rest[]
  /** Further notes. */
  readonly notes: readonly string[]
}

/** Something of the server's that the file does not name. */
export interface Rest {
  /** `template login`. */
  readonly what: string
  /** The call that removes it; undefined if there is no such call, or if the file has no list of its kind. */
  readonly removal?: Pick<Step, 'path' | 'run'>
}

/** The plan while it is being made. */
export interface Draft {
  readonly steps: Step[]
  readonly conflicts: Conflict[]
  readonly notInFile: Rest[]
  readonly notes: string[]
}

type Members = Readonly<Record<string, unknown>>

/** Why an application that something names cannot be meant. */
export const noApplication = (id: string): string =>
  `there is no application ${id}, neither in the file nor on the server: add it to applications`

/** Members that the file has and that are another on the server. */
export function findDifferences(names: readonly string[], file: Members, server: Members): Difference[] {
  return names
    .filter((name) => file[name] !== undefined && !isSame(name, file[name], server[name]))
    .map((name) => ({ name, before: server[name], after: file[name] }))
}

/** All that the file has, for what is not there yet. */
export const newMembers = (names: readonly string[], file: Members): Difference[] =>
  names.filter((name) => file[name] !== undefined).map((name) => ({ name, before: undefined, after: file[name] }))

/** The file's members as the body of a call. */
export const bodyOf = (differences: readonly Difference[]): Record<string, unknown> =>
  Object.fromEntries(differences.map(({ name, after }) => [name, after]))

const isSame = (name: string, one: unknown, other: unknown): boolean =>
  isDeepStrictEqual(inOrder(name, one), inOrder(name, other))

/** A list whose order has no meaning, in one order. */
const inOrder = (name: string, value: unknown): unknown =>
  SETS.has(name) && Array.isArray(value) ? value.map(String).toSorted() : value

/**
 * What of the server's is not among the names in the file. `owner`: the list of the file that owns what is of its kind, undefined where the
 * file has none. `removalOf`: the path of the DELETE that removes one, undefined for what stays in any case.
 */
export function findRest<T>(
  items: readonly T[],
  named: ReadonlySet<string>,
  nameOf: (item: T) => string,
  owner?: Path,
  removalOf: (item: T) => string | undefined = () => undefined,
): Rest[] {
  return items
    .filter((item) => !named.has(nameOf(item)))
    .map((item) => {
      const [what, removal] = [nameOf(item), removalOf(item)]
      if (owner === undefined || removal === undefined) return { what }
      return { what, removal: { path: owner, run: (bank) => bank.call('DELETE', removal) } }
    })
}
