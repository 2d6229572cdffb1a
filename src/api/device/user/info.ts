// user/info: answers claims about the owner of the activation. Spec: v3 §13, v4 §9.11.
import { Type } from '@sinclair/typebox'
import { openedEndpoint } from '../../../channel/flow/opened.ts'
import { readUserInfo } from '../../../domain/user-info/user-info.ts'
import type { DeviceParts } from '../parts.ts'

export const userInfo = openedEndpoint({
  path: 'user/info',
  summary: 'Claims about the user',
  errors: ['USER_INFO_FAILED'],
  encrypt: { sharedInfo1: '/pa/generic/activation' },
  response: Type.Object(
    {
      sub: Type.String(),
      jti: Type.String(),
      iat: Type.Integer({ description: 'seconds since 1970-01-01 UTC' }),
    },
    // The bank may add claims of any name and type.
    { additionalProperties: true },
  ),
  async handle({ activation }, parts: DeviceParts) {
    return await readUserInfo(parts, activation)
  },
})
