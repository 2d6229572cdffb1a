// Describes the messages of webhooks for the OpenAPI document. docs/WEBHOOKS.md says how they are delivered and checked (cloud §9).
import { Type } from '@sinclair/typebox'
import { WEBHOOK_EVENTS } from '../../domain/webhook/message.ts'
import type { Message } from '../../http/openapi.ts'
import { AnyMembers } from '../../http/types.ts'
import { State, Status } from './fields.ts'
import { OPERATION_MEMBERS } from './operations.ts'

const Text = Type.Optional(Type.String())
const Time = Type.Optional(Type.Integer({ description: 'milliseconds since 1970-01-01 UTC' }))
const Event = (kind: keyof typeof WEBHOOK_EVENTS) =>
  Type.Optional(
    Type.String({
      enum: [...WEBHOOK_EVENTS[kind]],
      description: 'what happened; absent in a message of an older version of pawl',
    }),
  )

const OperationMessage = Type.Object(
  {
    type: Type.Literal('OPERATION'),
    operationId: Type.String({ format: 'uuid' }),
    event: Event('OPERATION'),
    userId: Text,
    applications: Type.Optional(Type.Array(Type.String())),
    operationType: Text,
    parameters: Type.Optional(AnyMembers),
    additionalData: Type.Optional(AnyMembers),
    activationFlag: Text,
    status: Type.Optional(Status),
    data: Text,
    failureCount: Type.Optional(OPERATION_MEMBERS.failureCount),
    maxFailureCount: Type.Optional(OPERATION_MEMBERS.maxFailureCount),
    signatureType: Type.Optional(Type.Array(Type.String())),
    externalId: Text,
    timestampCreated: Time,
    timestampExpires: Time,
    timestampFinalized: Time,
    statusReason: Text,
    registrationId: Text,
    template: Text,
    language: Text,
    title: Text,
    message: Text,
    summary: Text,
  },
  {
    title: 'WebhookOperationMessage',
    examples: [
      {
        type: 'OPERATION',
        operationId: '3f2504e0-4f89-41d3-9a0c-0305e82c3301',
        event: 'approved',
        userId: 'alice',
        status: 'APPROVED',
      },
    ],
  },
)

const ActivationMessage = Type.Object(
  {
    type: Type.Literal('ACTIVATION'),
    activationId: Type.String({ format: 'uuid' }),
    event: Event('ACTIVATION'),
    userId: Text,
    activationName: Text,
    deviceInfo: Text,
    platform: Text,
    protocol: Text,
    activationFlags: Type.Optional(Type.Array(Type.String())),
    activationStatus: Type.Optional(State),
    blockedReason: Text,
    timestampBlockExpire: Time,
    applicationId: Text,
  },
  {
    title: 'WebhookActivationMessage',
    examples: [
      {
        type: 'ACTIVATION',
        activationId: '3f2504e0-4f89-41d3-9a0c-0305e82c3301',
        event: 'activated',
        activationStatus: 'ACTIVE',
      },
    ],
  },
)

const headers = {
  'webhook-id': 'of the delivery; a message that comes again has the same',
  'webhook-timestamp': 'seconds since 1970-01-01 UTC; refuse what is more than five minutes away',
  'webhook-signature': '`v1,` and the Base64 of HMAC-SHA-256 over id, timestamp and body, joined by dots; two during a rotation',
} as const

const description =
  'Sent to the `url` of a webhook. Beside `type`, the id and `event` it has the attributes that the webhook asked for.'

export const webhookMessages: readonly Message[] = [
  { name: 'tellOperation', summary: 'An operation was created, changed or ended', schema: OperationMessage },
  { name: 'tellActivation', summary: 'An activation was created or changed its state', schema: ActivationMessage },
].map((message) => ({ ...message, description, headers }))
