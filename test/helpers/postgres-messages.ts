// Messages of the protocol between PostgreSQL and its clients, for what stands between them.

export interface Message {
  /** Empty for the first message of a client. */
  readonly type: string
  /** The whole of it, as it goes over the wire. */
  readonly message: Buffer
}

/** Cuts a stream of PostgreSQL into its messages; `typeLength` is 0 until the first one has passed, which has no type. */
export function readMessages(typeLength: 0 | 1) {
  let header: 0 | 1 = typeLength
  let rest = Buffer.alloc(0)
  return (bytes: Buffer): Message[] => {
    rest = Buffer.concat([rest, bytes])
    const messages: Message[] = []
    while (rest.length >= header + 4) {
      const end = header + rest.readUInt32BE(header)
      if (rest.length < end) break
      messages.push({ type: header === 0 ? '' : String.fromCharCode(rest[0] ?? 0), message: rest.subarray(0, end) })
      rest = rest.subarray(end)
      header = 1
    }
    return messages
  }
}
