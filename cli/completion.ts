// Writes the completion script for a shell. The script contains every command and option, and asks no server.
import { toFlag } from './command.ts'
import { type Entry, isNoun } from './program.ts'

/** Maps the beginning of a command line (`''`, `app`, `app list`) to the words that may follow it. */
function listCompletions(entries: readonly Entry[]): ReadonlyMap<string, readonly string[]> {
  const optionsOf = (options: Readonly<Record<string, unknown>> = {}) => [...Object.keys(options).map(toFlag), '--json', '--help']
  return new Map([
    ['', [...entries.map(({ name }) => name), 'help', '--help', '--version']],
    ...entries.flatMap((entry): [string, readonly string[]][] =>
      isNoun(entry)
        ? [
            [entry.name, [...entry.commands.map(({ name }) => name), '--help']],
            ...entry.commands.map(({ name, options }): [string, string[]] => [`${entry.name} ${name}`, optionsOf(options)]),
          ]
        : [[entry.name, optionsOf(entry.options)]],
    ),
  ])
}

/** A script for bash to source. Where no word of pawl fits, bash completes file names. */
export const renderBash = (entries: readonly Entry[]): string => `# Completion of pawl for bash: eval "$(pawl completion bash)"
_pawl() {
  local word=\${COMP_WORDS[COMP_CWORD]} words=
  case \${COMP_WORDS[*]:1:COMP_CWORD-1} in
${renderCases(entries, (words) => `words='${words.join(' ')}'`)}
  esac
  COMPREPLY=($(compgen -W "$words" -- "$word"))
}
complete -o default -F _pawl pawl
`

/** A script for zsh to evaluate, or to run at the first completion as the file `_pawl` of a folder in `fpath`. */
export const renderZsh = (entries: readonly Entry[]): string => `#compdef pawl
# Completion of pawl for zsh: eval "$(pawl completion zsh)"
_pawl() {
  local -a candidates
  case \${(j: :)words[2,CURRENT-1]} in
${renderCases(entries, (words) => `candidates=(${words.join(' ')})`)}
  esac
  compadd -a candidates || _files
}
if [[ \${funcstack[1]} == _pawl ]]; then
  _pawl
else
  compdef _pawl pawl
fi
`

/** A script for fish, to be stored as `~/.config/fish/completions/pawl.fish`. */
export function renderFish(entries: readonly Entry[]): string {
  const lines = [...listCompletions(entries)].map(([line, words]) => {
    const depth = line === '' ? 0 : line.split(' ').length
    const isExact = entries.some((entry) => isNoun(entry) && entry.name === line)
    return `complete -c pawl -n '__pawl_line ${isExact || depth === 0 ? 'is' : 'begins'} "${line}"' -a '${words.join(' ')}'`
  })
  return `# Completion of pawl for fish: pawl completion fish >~/.config/fish/completions/pawl.fish
function __pawl_line
    set -l words (commandline -opc)
    set -l line (string join ' ' -- $words[2..-1])
    if test $argv[1] = is
        test "$line" = "$argv[2]"
    else
        string match -q -- "$argv[2]" "$line"; or string match -q -- "$argv[2] *" "$line"
    end
end
${lines.join('\n')}
`
}

/** Renders the branches of a shell's `case`. Longer lines come first, because `app` alone would match `app list`, too. */
function renderCases(entries: readonly Entry[], assign: (words: readonly string[]) => string): string {
  return [...listCompletions(entries)]
    .toSorted(([a], [b]) => b.split(' ').length - a.split(' ').length || b.length - a.length)
    .map(([line, words]) => `    ${line === '' ? "''" : `'${line}' | '${line} '*`}) ${assign(words)} ;;`)
    .join('\n')
}
