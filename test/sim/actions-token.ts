// Lists the actions of phones with tokens: they make a token, read with it, and remove it.
import { type Action, codeJob, somePhone } from './jobs.ts'

export const TOKEN_ACTIONS: readonly Action[] = [
  {
    weight: 8,
    isLight: false,
    make: async (life) => {
      const phone = somePhone(life)
      const code = await phone.createToken()
      const job = codeJob(life, code)
      return {
        ...job,
        told: (reply) => {
          const check = job.told(reply)
          const token = code.request.open(reply) as { id: string }
          life.facts.tokens.add(token.id)
          life.tokens.push({ phone, id: token.id, token })
          return check
        },
      }
    },
  },
  {
    weight: 14,
    isLight: false,
    make: async (life) => {
      if (life.tokens.length === 0) return undefined
      const { phone, id, token } = life.site.chance.pick(life.tokens)
      const request = await phone.useToken(token)
      const activationId = phone.activationId()
      return {
        name: `${phone.name} reads with token ${id}`,
        request,
        about: activationId,
        told:
          ({ text }) =>
          (look) => {
            const stranger = life.operations.find(
              ({ id: operationId, only }) => only && only !== activationId && text.includes(operationId),
            )
            if (stranger !== undefined)
              return `operation ${stranger.id} is for ${stranger.only} alone, and ${phone.name} was shown it`
            if (!look.before.tokens.has(id)) return `the removed token ${id} was good`
            const state = look.before.activations.get(activationId)?.state
            return state === 'REMOVED' ? `a token of the removed activation of ${phone.name} was good` : undefined
          },
      }
    },
  },
  {
    weight: 1,
    isLight: true,
    make: (life) => {
      if (life.tokens.length === 0) return undefined
      const { phone, id } = life.site.chance.pick(life.tokens)
      // The server may remove the token even if its answer is lost.
      life.facts.tokens.delete(id)
      return codeJob(life, phone.removeToken(id), () => {
        life.facts.goneTokens.add(id)
        return undefined
      })
    },
  },
]
