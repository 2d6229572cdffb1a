// Splits the protocol between PostgreSQL and its clients into messages, for proxies between them.

export interface Message {
  /** Empty for the first message of a client. */
  readonly type: string
  /** The bytes of the whole message. */
  readonly message: Buffer
}

/** Splits a stream into messages. `typeLength` is 0 for a client, whose first message has no type. */
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
