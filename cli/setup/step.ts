// Defines the steps of a plan: each is a difference between a set-up file and a server, with the call that removes it.
import { isDeepStrictEqual } from 'node:util'
import type { Bank } from '../bank.ts'
import type { FaultKind } from '../fault.ts'
import { SETS } from './schema.ts'
import type { Path } from './yaml.ts'

/** A secret that is shown only once. */
export interface Secret {
  /** The owner of the secret, like `user bank`. */
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
  /** The thing that the step is about, like `version 2.0 of my-app`. */
  readonly what: string
  /** The place in the file. */
  readonly path: Path
  readonly differences: readonly Difference[]
  /** Advice for the case that the thing was made, but the answer with its secret was lost. */
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
  /** True when somebody who applies a file at the same time may be about to remove the difference. */
  readonly mayPass?: boolean
}

export interface Plan {
  readonly steps: readonly Step[]
  readonly conflicts: readonly Conflict[]
  /** Things of the server that the file does not name, and that stay. */
  readonly notInFile: readonly Rest[]
  readonly notes: readonly string[]
}

/** A thing of the server that the file does not name. */
export interface Rest {
  /** The thing, like `template login`. */
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

/** The problem of a reference to an application that does not exist. */
export const noApplication = (id: string): string =>
  `there is no application ${id}, neither in the file nor on the server: add it to applications`

/** Finds the members of the file whose values on the server are different: all of them if the server does not have the thing. */
export function findDifferences(names: readonly string[], file: Members, server: Members = {}): Difference[] {
  return names
    .filter((name) => file[name] !== undefined && !isSame(name, file[name], server[name]))
    .map((name) => ({ name, before: server[name], after: file[name] }))
}

/** The file's members as the body of a call. */
export const bodyOf = (differences: readonly Difference[]): Record<string, unknown> =>
  Object.fromEntries(differences.map(({ name, after }) => [name, after]))

const isSame = (name: string, one: unknown, other: unknown): boolean =>
  isDeepStrictEqual(inOrder(name, one), inOrder(name, other))

/** Sorts a list whose order has no meaning; returns any other value unchanged. */
const inOrder = (name: string, value: unknown): unknown =>
  SETS.has(name) && Array.isArray(value) ? value.map(String).toSorted() : value

/**
 * Finds things of the server that the file does not name. `owner`: the place of the file's list of such things, undefined without a list.
 * `removalOf`: the path of the DELETE call that removes a thing, undefined for a thing that always stays.
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
