// POST /verification/certificate-request: verifies that a phone made a certificate request with one of its device keys. Spec: cloud §14.2.
import { Type } from '@sinclair/typebox'
import { parseCertificateRequestPem } from '../../lib/pem.ts'
import { type ReadCertificateRequest, readCertificateRequest } from '../../protocol/device-key.ts'
import { applicationOf } from '../cloud/application-of.ts'
import { cloudEndpoint } from '../cloud/endpoint.ts'
import { MadeId } from '../cloud/fields.ts'
import { Algorithm, DOOR_ROLES, SignatureVerdict } from './members.ts'
import { judgeSignatures, type SentSignatures } from './judge-signatures.ts'

const PEM_LENGTH_MAX = 65_536

export const certificateRequest = cloudEndpoint({
  route: 'POST /verification/certificate-request',
  operationId: 'verifyCertificateRequest',
  summary: 'Whether a phone made a certificate request with one of its device keys',
  description:
    'For a certification authority of the bank, before it issues: the request (PKCS#10) is signed by the key that is in it, and that key is a ' +
    'device key of this activation, which is ACTIVE. **Subject and extensions are what the phone wrote**: the authority decides what it certifies. ' +
    'The same request is valid again and again.',
  errors: ['REGISTRATION_NOT_FOUND'],
  roles: DOOR_ROLES,
  body: Type.Object({
    activationId: MadeId,
    pem: Type.String({
      minLength: 1,
      maxLength: PEM_LENGTH_MAX,
      description: 'the request alone, as the phone sent it',
      examples: ['-----BEGIN CERTIFICATE REQUEST-----\nMIIB…\n-----END CERTIFICATE REQUEST-----\n'],
    }),
  }),
  response: Type.Object(
    {
      ...SignatureVerdict,
      subject: Type.Optional(
        Type.String({ description: 'of a valid request: as RFC 4514 writes it', examples: ['CN=alice,O=Bank'] }),
      ),
      algorithm: Type.Optional(Algorithm),
    },
    { title: 'CertificateRequestVerdict' },
  ),
  async handle(call) {
    const { activationId, pem } = call.body
    const request = read(pem)
    const own = { ...call, applicationId: await applicationOf(call) }
    const { activation, verified, ...judged } = await judgeSignatures(own, DOOR, activationId, request && sentBy(request))
    const [algorithm] = verified
    return { ...judged, ...activation, ...(judged.isValid && request && algorithm && { subject: request.subject, algorithm }) }
  },
})

const DOOR = { path: '/verification/certificate-request', type: 'certificate_request' } as const

function read(pem: string): ReadCertificateRequest | undefined {
  const der = parseCertificateRequestPem(pem)
  return der && readCertificateRequest(der)
}

const sentBy = ({ covered, ...request }: ReadCertificateRequest): SentSignatures => ({
  form: 'PKCS10',
  data: covered,
  signatures: [{ covered, ...request }],
  states: ['ACTIVE'],
  // A certificate contains only one key.
  isEnough: (verified) => verified.length === 1,
})
