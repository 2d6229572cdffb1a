// Declares pawl admin: works on the database itself, to give the administrator a new password and to print every row.
import { command, type Noun, text } from '../command.ts'

const reset = command({
  name: 'reset',
  summary: 'Gives the administrator of the configured database a new password and prints it',
  more: 'A credential with the name of the administrator is replaced. Running servers on PostgreSQL follow within five seconds. An embedded database can be opened only while its server is stopped.',
  options: { user: text('NAME', 'the administrator; by default PAWL_ADMIN_USER, or admin') },
  examples: ['admin reset', 'admin reset --user second'],
  run: async ({ terminal, values }) => {
    const [{ withDatabase }, { resetAdministrator }] = await Promise.all([
      import('../local/database.ts'),
      import('../local/administrator.ts'),
    ])
    return withDatabase(terminal, { mustExist: true }, async (database, settings, platform) => {
      const user = values.user ?? settings.config.adminUser
      const password = await resetAdministrator(database, settings, platform, user)
      return { json: { user, password }, text: `Administrator: ${user}, password: ${password} (shown only now)\n` }
    })
  },
})

const dump = command({
  name: 'dump',
  summary: 'Prints every row of every table of the configured database',
  more: 'Use it to check that nothing secret is stored in the clear. An embedded database can be opened only while its server is stopped.',
  examples: ['admin dump', 'admin dump --json'],
  run: async ({ terminal }) => {
    const [{ withDatabase }, { dumpDatabase }] = await Promise.all([import('../local/database.ts'), import('../local/dump.ts')])
    return withDatabase(terminal, { mustExist: true }, dumpDatabase)
  },
})

export const admin: Noun = {
  name: 'admin',
  summary: 'Works on the database itself: gives the administrator a new password, and prints every row',
  commands: [reset, dump],
}
