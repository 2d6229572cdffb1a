// Lists the actions of phones that upgrade from 3.x to 4.0: they begin with a code of 3.x, and the first code of 4.0 confirms the upgrade. Answers
// are lost on the way, so that a phone does not know which of its two sides the server takes.
import { type Action, codeJob } from './jobs.ts'
import { createSimulatedPhone } from './phones.ts'

export const UPGRADE_ACTIONS: readonly Action[] = [
  {
    weight: 3,
    isLight: false,
    make: async (life) => {
      const older = life.phones.filter(({ prepareUpgrade }) => prepareUpgrade !== undefined)
      if (older.length === 0) return undefined
      const old = life.site.chance.pick(older)
      const phone = createSimulatedPhone(
        life.prepared,
        `${old.name} as`,
        { userId: old.userId, version: '4.0' },
        life.site.chance,
      )
      const code = await old.prepareUpgrade?.(phone)
      if (code === undefined) return undefined
      const job = codeJob(life, code)
      return {
        ...job,
        told: (reply) => {
          code.request.open(reply)
          life.upgrades.push({ old, phone })
          return job.told(reply)
        },
      }
    },
  },
  {
    weight: 5,
    isLight: true,
    make: (life) => {
      if (life.upgrades.length === 0) return undefined
      const { old, phone } = life.site.chance.pick(life.upgrades.slice(-2))
      const code = phone.confirmUpgrade?.()
      return (
        code &&
        codeJob(life, code, () => {
          if (!life.phones.includes(phone)) life.phones.splice(life.phones.indexOf(old), 1, phone)
          return ({ after }) => {
            const generation = after.activations.get(phone.activationId())?.generation
            return generation === 4
              ? undefined
              : `the upgrade of ${phone.name} was answered, and it is of generation ${generation}`
          }
        })
      )
    },
  },
]
