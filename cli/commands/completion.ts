// Declares pawl completion: prints the script with which a shell completes command lines of pawl.
import { command } from '../command.ts'
import { renderBash, renderFish, renderZsh } from '../completion.ts'
import { usageFault } from '../fault.ts'
import type { Entry } from '../program.ts'

/** Makes the command. `entries` is a function, because the list of all entries contains this command. */
export const completion = (entries: () => readonly Entry[]) =>
  command({
    name: 'completion',
    summary: 'Prints a script with which a shell completes command lines of pawl',
    words: { '<shell>': 'bash, zsh or fish' },
    examples: [
      'completion bash >>~/.bashrc',
      'completion zsh >~/.zfunc/_pawl',
      'completion fish >~/.config/fish/completions/pawl.fish',
    ],
    run: async ({ words: [shell = ''] }) => {
      const render = { bash: renderBash, zsh: renderZsh, fish: renderFish }[shell]
      if (render === undefined) throw usageFault(`${shell}: the shell is bash, zsh or fish`)
      const script = render(entries())
      return { json: { script }, text: script }
    },
  })
