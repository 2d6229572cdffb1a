// Events of a transaction, which may be rolled back: they are told once it is committed.
import type { Events } from './events.ts'

/** The same events; that of a changed registration waits for `tell`, to be called when the change is committed. */
export function holdChanges(events: Events): { readonly events: Events; readonly tell: () => void } {
  const held: Parameters<Events['registrationChanged']>[0][] = []
  const registrationChanged: Events['registrationChanged'] = (fields) => void held.push(fields)
  return { events: { ...events, registrationChanged }, tell: () => held.splice(0).forEach(events.registrationChanged) }
}
