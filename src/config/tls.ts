// Settings of TLS with client certificates on the internal listener (http/internal-tls.ts).
import { path, type Setting } from './kinds.ts'
import type { Config } from './shape.ts'

export const TLS_SETTINGS: { readonly [M in keyof Config & `internalTls${string}`]-?: Setting<Config[M]> } = {
  internalTlsCertificate: {
    name: 'PAWL_INTERNAL_TLS_CERTIFICATE',
    kind: path,
    description:
      'PEM file with the certificate of the internal listener and those that lead to its root. With it, PAWL_INTERNAL_TLS_KEY and ' +
      'PAWL_INTERNAL_TLS_CLIENT_CA that listener speaks TLS alone, to callers with a certificate. The files are read again when they change.',
  },
  internalTlsKey: {
    name: 'PAWL_INTERNAL_TLS_KEY',
    kind: path,
    description: 'PEM file with the private key of that certificate.',
  },
  internalTlsClientCa: {
    name: 'PAWL_INTERNAL_TLS_CLIENT_CA',
    kind: path,
    description:
      'PEM file with the authorities that sign callers\' certificates. docs/spec/cloud.md, "Client certificates", says what a certificate is good for.',
  },
}
