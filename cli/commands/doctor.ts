// pawl doctor: what is wrong with an installation, and what to do about it.
import { command } from '../command.ts'

export const doctor = command({
  name: 'doctor',
  summary:
    'Looks at settings, disk, database, clock, migrations, keys, certificates, webhooks, pushes and addresses, and says what to do',
  more: 'It reads and never writes. Apple is sent a push to a phone that does not exist, where there are credentials for it. The exit code is 1 when something is broken. What lies in an embedded database is asked of its server while that runs, with PAWL_ADMIN or what pawl login keeps.',
  examples: ['doctor', 'doctor --json'],
  run: async ({ terminal }) => (await import('../doctor/doctor.ts')).diagnose(terminal),
})
