// What a mobile app needs of its application, as /admin/application answers it (cloud §10).
import { Type } from '@sinclair/typebox'
import { ObjectResponse } from '../../../../http/types.ts'

export const ApplicationConfiguration = ObjectResponse(
  Type.Object({
    serviceBaseUrl: Type.String({ examples: ['https://phones.bank.example'] }),
    masterServerPublicKey: Type.String({
      description: 'Base64 of the point that verifies QR codes: of P-256, 65 bytes, or of P-384, 97 bytes',
    }),
    qrSignatureCurve: Type.Optional(
      Type.Literal('P-384', {
        description: 'the curve of the key where it is not P-256: the application does not admit protocol 3',
      }),
    ),
    appKey: Type.String({ description: 'Base64 of 16 bytes', examples: ['dVoIMqp0QyQh5zuHk0KKGQ=='] }),
    appSecret: Type.String({ description: 'Base64 of 16 bytes', examples: ['Q0P6F8pPaQr8vFzH6MDh1g=='] }),
  }),
)
