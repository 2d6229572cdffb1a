// Writes the completion script for a shell. The script contains every command and option, and asks no server.
import { toFlag } from './command.ts'
import { type Entry, isNoun } from './program.ts'

/** Words that may come behind a line, by the line: `''`, `app`, `app list` … */
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

/** A script for bash, to be sourced; files are completed where a word is none of pawl's. */
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

/** The same for zsh: to be evaluated, or as a file `_pawl` of a folder in `fpath`, which zsh runs at the first completion. */
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

/** The same for fish, as the file `~/.config/fish/completions/pawl.fish`. */
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

/** Longer lines first: `app list` and what follows it, before `app` alone. */
function renderCases(entries: readonly Entry[], assign: (words: readonly string[]) => string): string {
  return [...listCompletions(entries)]
    .toSorted(([a], [b]) => b.split(' ').length - a.split(' ').length || b.length - a.length)
    .map(([line, words]) => `    ${line === '' ? "''" : `'${line}' | '${line} '*`}) ${assign(words)} ;;`)
    .join('\n')
}
