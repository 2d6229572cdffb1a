// Imports the tokens of imported activations.
import { places } from '../../src/domain/secrets/secrets.ts'
import { parseBase64 } from '../../src/lib/base64.ts'
import { findExistingTokens, type ImportedActivation, type ImportedToken } from '../../src/storage/activation/import.ts'
import { BAD_TIME, type ImportParts, isSourceId } from './parts.ts'
import type { SourceToken } from './source.ts'

/** Converts a token; returns a text with the reason when it is left out. */
export function convertToken(
  { recordKeys }: Pick<ImportParts, 'recordKeys'>,
  owner: ImportedActivation,
  { tokenId, activationId, secret, signatureType, createdAt }: SourceToken,
): ImportedToken | string {
  const factors = signatureType.toUpperCase()
  const bytes = parseBase64(secret, TOKEN_SECRET_BYTES)
  if (!isSourceId(tokenId)) return 'its id is blank, or has control characters'
  if (bytes === undefined) return 'its secret is not Base64 of 16 bytes'
  if (!FACTORS.includes(factors)) return `its factors are ${signatureType}`
  if (owner.state === 'REMOVED') return 'its activation is removed'
  if (createdAt === null) return BAD_TIME
  return {
    tokenId,
    activationId,
    factors,
    tokenSecret: recordKeys.seal(places.tokenSecret({ ...owner, tokenId, factors }), bytes),
    createdAt,
  }
}

/** Counts the tokens of a batch, and reports why tokens are left out. */
export async function countTokens(
  parts: ImportParts,
  tokens: readonly SourceToken[],
  {
    existing,
    taken,
    storedTokens,
  }: {
    readonly existing: ReadonlySet<string>
    readonly taken: ReadonlyMap<string, ImportedActivation>
    readonly storedTokens: ReadonlySet<string>
  },
): Promise<void> {
  const { db, record } = parts
  const there = await findExistingTokens(
    db,
    tokens.filter(({ activationId }) => existing.has(activationId)).map(({ tokenId }) => tokenId),
  )
  for (const token of tokens) {
    const { tokenId, activationId } = token
    const owner = taken.get(activationId)
    if (storedTokens.has(tokenId)) record.imported('token', 1)
    else if (there.has(tokenId)) record.alreadyThere('token', 1)
    else if (existing.has(activationId)) record.leaveOut('token', tokenId, 'its activation is there already, without it')
    else if (owner === undefined) record.leaveOut('token', tokenId, 'its activation is left out')
    else {
      const refusal = convertToken(parts, owner, token)
      record.leaveOut('token', tokenId, typeof refusal === 'string' ? refusal : 'its id is there already')
    }
  }
}

const FACTORS: readonly string[] = ['POSSESSION', 'POSSESSION_KNOWLEDGE', 'POSSESSION_BIOMETRY']
const TOKEN_SECRET_BYTES = 16
