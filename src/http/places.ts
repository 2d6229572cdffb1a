// Places under a limit, and how many each source holds. Anybody may take one of the first three quarters. Beyond them a source may hold its
// share: the limit divided by the number of sources, at least four places, at most three quarters. A source that has its share gets a new place
// only in exchange for an old one. When no place is left, the source that has most gives one up, so that another source is always let in.

/** One place, until it is left. The functions below ignore a place that was left already or never taken. */
export interface Place<Owner> {
  readonly owner: Owner
  account: Account<Owner> | undefined
}

interface Account<Owner> {
  /** The source; undefined for the account of all who have no share. */
  readonly source: string | undefined
  held: number
  /** The places that may be ended, the longest offered first. */
  readonly offered: Set<Place<Owner>>
}

export interface Places<Owner> {
  /** Whether one more place is left for `source`. Undefined, here and below, stands for somebody without a share, whom only the limit stops. */
  readonly isOpenTo: (source: string | undefined) => boolean
  readonly take: (source: string | undefined, owner: Owner) => Place<Owner>
  readonly leave: (place: Place<Owner> | undefined) => void
  /** Offers the place: it may be ended for others, after all that are offered already. */
  readonly offer: (place: Place<Owner> | undefined) => void
  readonly withdraw: (place: Place<Owner> | undefined) => void
  /** Takes the place out of its source's share, and withdraws it. */
  readonly exempt: (place: Place<Owner> | undefined) => void
  /**
   * The owner whose place has to be ended for one more of `source`, if that is necessary and possible: the longest offered of the source itself
   * if it has its share, else of the source that has most, else of those who have no share.
   */
  readonly findSurplus: (source: string | undefined) => Owner | undefined
  /** The owners of all offered places that belong to a share. */
  readonly listOffered: () => readonly Owner[]
}

export function createPlaces<Owner>(limit: number): Places<Owner> {
  const open = Math.floor((limit * 3) / 4)
  const accounts = new Map<string, Account<Owner>>()
  const others: Account<Owner> = { source: undefined, held: 0, offered: new Set() }
  let taken = 0

  const hasShare = (source: string | undefined): boolean => {
    const account = source === undefined ? undefined : accounts.get(source)
    if (account === undefined || taken < open) return false
    return account.held >= Math.max(SHARE_MIN, Math.min(open, Math.floor(limit / accounts.size)))
  }

  const accountOf = (source: string | undefined): Account<Owner> => {
    if (source === undefined) return others
    const known = accounts.get(source)
    if (known !== undefined) return known
    const account = { source, held: 0, offered: new Set<Place<Owner>>() }
    accounts.set(source, account)
    return account
  }

  const enter = (place: Place<Owner>, source: string | undefined): void => {
    place.account = accountOf(source)
    place.account.held += 1
    taken += 1
  }

  const leave = (place: Place<Owner> | undefined): void => {
    const account = place?.account
    if (place === undefined || account === undefined) return
    place.account = undefined
    account.offered.delete(place)
    account.held -= 1
    taken -= 1
    if (account.held === 0 && account.source !== undefined) accounts.delete(account.source)
  }

  return {
    leave,
    isOpenTo: (source) => taken < limit && !hasShare(source),
    take: (source, owner) => {
      const place = { owner, account: undefined }
      enter(place, source)
      return place
    },
    offer: (place) => {
      if (place === undefined) return
      place.account?.offered.delete(place)
      place.account?.offered.add(place)
    },
    withdraw: (place) => {
      if (place) place.account?.offered.delete(place)
    },
    exempt: (place) => {
      if (place?.account?.source === undefined) return
      leave(place)
      enter(place, undefined)
    },
    findSurplus: (source) => {
      if (hasShare(source)) return firstOf(accountOf(source))
      if (taken < limit) return undefined
      let most = others
      for (const account of accounts.values())
        if (account.offered.size > 0 && (most === others || account.held > most.held)) most = account
      return firstOf(most)
    },
    listOffered: () => [...accounts.values()].flatMap(({ offered }) => [...offered].map(({ owner }) => owner)),
  }
}

function firstOf<Owner>({ offered }: Account<Owner>): Owner | undefined {
  const [place] = offered
  return place?.owner
}

/** The share is never smaller than this, because one phone has so many places at once. */
const SHARE_MIN = 4
