// What the endpoints of a registration share: whose it is, and an example of its QR code (cloud §3).
import { Type } from '@sinclair/typebox'
import { UserId } from '../fields.ts'

export const QR_TEXT = 'VVVVV-VVVVV-VVVVV-VTFVA#MEUCIQDcPHNjYPjLQ7iYoQ=='

export const OfUser = Type.Object({ userId: UserId })
