// The two dialects of the reference's back-end API: that of its versions 1.x, and that of 2.x, which has other words for the same.

export interface Dialect {
  /** Path element: /rest/v3, /rest/v4. */
  readonly name: 'v3' | 'v4'
  /** First word of the paths that verify codes. */
  readonly place: 'signature' | 'auth'
  /** Members of a code, and of the answer about one. */
  readonly code: 'signature' | 'authenticationCode'
  readonly factors: 'signatureType' | 'authenticationCodeType'
  readonly version: 'signatureVersion' | 'authenticationVersion'
  readonly isValid: 'signatureValid' | 'authenticationValid'
  /** Member of an operation: factors that may approve it. */
  readonly operationFactors: 'signatureType' | 'authenticationCodeTypes'
}

export const V3: Dialect = {
  name: 'v3',
  place: 'signature',
  code: 'signature',
  factors: 'signatureType',
  version: 'signatureVersion',
  isValid: 'signatureValid',
  operationFactors: 'signatureType',
}

export const V4: Dialect = {
  name: 'v4',
  place: 'auth',
  code: 'authenticationCode',
  factors: 'authenticationCodeType',
  version: 'authenticationVersion',
  isValid: 'authenticationValid',
  operationFactors: 'authenticationCodeTypes',
}
