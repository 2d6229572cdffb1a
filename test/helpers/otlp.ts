// Reads the spans that a collector receives: OTLP in protobuf, with the field numbers of opentelemetry-proto (trace.proto, common.proto).

export interface ExportedSpan {
  readonly traceId: string
  readonly spanId: string
  /** Empty for the first span of a trace. */
  readonly parentSpanId: string
  readonly name: string
  /** Nanoseconds since 1970. */
  readonly startedAt: bigint
  readonly endedAt: bigint
  readonly attributes: Readonly<Record<string, unknown>>
}

/** Every span of an ExportTraceServiceRequest. */
export const readSpans = (request: Buffer): readonly ExportedSpan[] =>
  messagesOf(request, 1)
    .flatMap((resourceSpans) => messagesOf(resourceSpans, 2))
    .flatMap((scopeSpans) => messagesOf(scopeSpans, 2))
    .map(readSpan)

function readSpan(span: Buffer): ExportedSpan {
  const bytesOf = (field: number): Buffer => messagesOf(span, field)[0] ?? Buffer.alloc(0)
  const timeOf = (field: number): bigint => fieldsOf(span).find((one) => one.field === field)?.value as bigint
  return {
    traceId: bytesOf(1).toString('hex'),
    spanId: bytesOf(2).toString('hex'),
    parentSpanId: bytesOf(4).toString('hex'),
    name: bytesOf(5).toString('utf8'),
    startedAt: timeOf(7),
    endedAt: timeOf(8),
    attributes: Object.fromEntries(messagesOf(span, 9).map(readAttribute)),
  }
}

/** Reads an attribute that is a text or a number. pawl has no others. */
function readAttribute(attribute: Buffer): readonly [string, unknown] {
  const [key = Buffer.alloc(0)] = messagesOf(attribute, 1)
  const [value] = messagesOf(attribute, 2).flatMap(fieldsOf)
  return [key.toString('utf8'), Buffer.isBuffer(value?.value) ? value.value.toString('utf8') : Number(value?.value)]
}

const messagesOf = (message: Buffer, wanted: number): readonly Buffer[] =>
  fieldsOf(message).flatMap(({ field, value }) => (field === wanted && Buffer.isBuffer(value) ? [value] : []))

interface Field {
  readonly field: number
  readonly value: Buffer | bigint
}

/** The fields of a message, in their order. Throws for a type that OTLP does not use. */
function fieldsOf(message: Buffer): readonly Field[] {
  const fields: Field[] = []
  let at = 0
  const take = (length: number): Buffer => message.subarray(at, (at += length))
  const varint = (): bigint => {
    let value = 0n
    for (let shift = 0n; ; shift += 7n) {
      const byte = take(1).readUInt8()
      value |= BigInt(byte & 0x7f) << shift
      if (byte < 0x80) return value
    }
  }
  while (at < message.length) {
    const tag = Number(varint())
    const type = tag & 7
    if (type !== 0 && type !== 1 && type !== 2 && type !== 5) throw new Error(`a field of type ${type}`)
    const value =
      type === 0
        ? varint()
        : type === 1
          ? take(8).readBigUInt64LE()
          : type === 2
            ? take(Number(varint()))
            : BigInt(take(4).readUInt32LE())
    fields.push({ field: tag >> 3, value })
  }
  return fields
}
