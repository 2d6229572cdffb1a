// Declares pawl doctor: finds faults of an installation, and says what to do about them.
import { command } from '../command.ts'

export const doctor = command({
  name: 'doctor',
  summary:
    'Looks at settings, disk, database, clock, migrations, keys, certificates, webhooks, pushes and addresses, and says what to do',
  more: 'It reads and never writes. With credentials for Apple, it sends a push to a phone that does not exist. The exit code is 1 when something is broken. While a server runs on an embedded database, the doctor asks that server, with PAWL_ADMIN or the credential of pawl login.',
  examples: ['doctor', 'doctor --json'],
  run: async ({ terminal }) => (await import('../doctor/doctor.ts')).diagnose(terminal),
})
