// Composes operations in the form that phones read (mobile-token §3).
import { type Static, Type } from '@sinclair/typebox'
import type { Client } from '../../../channel/stages/receive.ts'
import { AnyMembers } from '../../../http/types.ts'
import { statusAt } from '../../../domain/operation/operation.ts'
import { renderOperationForm } from '../../../domain/operation/form.ts'
import type { ListElementType } from '../../../domain/template/ui.ts'
import { chooseTexts } from '../../../domain/template/template.ts'
import { parseAcceptLanguage } from '../../../http/language.ts'
import type { OperationRow } from '../../../storage/operation/operations.ts'
import type { MobileTokenParts } from '../parts.ts'

/** The members that phones parse. More members may be added. */
export const OperationObject = Type.Object({
  id: Type.String(),
  name: Type.String({ description: 'the operation type' }),
  data: Type.String({ description: 'what the phone signs' }),
  status: Type.String(),
  statusReason: Type.Optional(Type.String()),
  operationCreated: Type.String({ description: "yyyy-MM-dd'T'HH:mm:ssZ, UTC, without fraction" }),
  operationExpires: Type.String({ description: "yyyy-MM-dd'T'HH:mm:ssZ, UTC, without fraction" }),
  allowedSignatureType: Type.Object({ type: Type.String(), variants: Type.Array(Type.String()) }),
  formData: Type.Object({
    title: Type.String(),
    message: Type.String(),
    attributes: Type.Array(AnyMembers),
    resultTexts: Type.Optional(
      Type.Partial(Type.Object({ success: Type.String(), failure: Type.String(), reject: Type.String() })),
    ),
  }),
  ui: Type.Optional(AnyMembers),
})

/** Values of OperationObject, in the language of the phone, with the status at `now` (ms). Operations without texts are left out. */
export async function toOperationObjects(
  { templateTexts }: MobileTokenParts,
  operations: readonly OperationRow[],
  now: number,
  client: Pick<Client, 'acceptLanguage' | 'userAgent'>,
): Promise<Static<typeof OperationObject>[]> {
  const tags = parseAcceptLanguage(client.acceptLanguage)
  // Numbers are in the phone's language, even if the template has no texts in it.
  const numberLocale = tags.find((tag) => Intl.NumberFormat.supportedLocalesOf(tag).length > 0)
  const listElementType = listElementTypeOf(client.userAgent)
  const texts = await templateTexts(operations.map(({ templateRevisionId }) => templateRevisionId))
  return operations.flatMap((operation) => {
    const own = texts.get(operation.templateRevisionId)
    if (own === undefined) return []
    const { formData, ui } = renderOperationForm({
      ...chooseTexts(own, tags),
      numberLocale,
      parameters: operation.parameters,
      riskFlags: operation.riskFlags,
      hasProximityCheck: operation.proximitySeed !== null,
      listElementType,
    })
    const { statusReason } = operation
    return {
      id: operation.operationId,
      name: operation.operationType,
      data: operation.data,
      status: statusAt(operation, now),
      ...(statusReason !== null && { statusReason }),
      operationCreated: formatTime(operation.createdAt.getTime()),
      operationExpires: formatTime(operation.expiresAt.getTime()),
      allowedSignatureType: toSignatureType(operation.signatureTypes),
      formData: { ...formData, attributes: [...formData.attributes] },
      ...(ui && { ui }),
    }
  })
}

/** The element name that the SDK reads. Only the SDK for iOS, recognised by its User-Agent, reads `LISTITEM`. */
const listElementTypeOf = (userAgent = ''): ListElementType =>
  /^PowerAuthNetworking\/.*\b(?:iOS|iPadOS)\//.test(userAgent) ? 'LISTITEM' : 'LIST_ITEM'

/** A time (ms) as `2026-01-02T14:43:13+0000`, without a fraction, which strict parsers refuse. */
export const formatTime = (milliseconds: number): string =>
  `${new Date(milliseconds).toISOString().slice(0, -'.000Z'.length)}+0000`

/** Composes allowedSignatureType. One factor is enough if the template lists `possession`, even if it lists others, too (mobile-token §3). */
const toSignatureType = (signatureTypes: readonly string[]): { type: string; variants: string[] } =>
  signatureTypes.includes('possession') ? { type: '1FA', variants: [] } : { type: '2FA', variants: [...signatureTypes] }
