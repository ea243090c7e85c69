"""`pergola completion`: scripts for shells, and the hidden command that they call.

The scripts contain no names of commands: for each completion they call `pergola __complete` with
the words before the cursor. It prints one candidate a line, with a description after a tab, or
`:files` where the shell completes paths.
"""

import sys
from typing import TYPE_CHECKING, Final, Literal

from pergola.cli.text import say

if TYPE_CHECKING:
    from cyclopts import App

HIDDEN: Final = "__complete"

_BASH: Final = r"""# Completion of pergola for bash: source <(pergola completion bash)
_pergola() {
  local line="${COMP_LINE:0:COMP_POINT}" words word cut answer found
  IFS=' ' read -ra words <<< "$line"
  [[ $line == *[[:space:]] ]] && words+=("")
  word="${words[${#words[@]}-1]}"
  cut="${word%"${word##*[:=]}"}"
  COMPREPLY=()
  answer="$("${words[0]}" __complete "${words[@]:1}" 2> /dev/null)" || return
  if [[ $answer == :files ]]; then
    compopt -o default 2> /dev/null
    return
  fi
  while IFS= read -r found; do
    found="${found%%$'\t'*}"
    [[ -n $found ]] && COMPREPLY+=("${found#"$cut"}")
  done <<< "$answer"
  if [[ ${#COMPREPLY[@]} -eq 1 && ${COMPREPLY[0]} == */ ]]; then
    compopt -o nospace 2> /dev/null
  fi
}
complete -F _pergola pergola kubectl-pergola
"""
_ZSH: Final = r"""#compdef pergola kubectl-pergola
# Completion of pergola for zsh: source <(pergola completion zsh)
_pergola() {
  local -a found open
  local each
  found=("${(@f)$("${words[1]}" __complete "${(@)words[2,CURRENT]}" 2> /dev/null)}")
  if [[ $found[1] == :files ]]; then
    _files
    return
  fi
  found=("${(@)found%%$'\t'*}")
  open=("${(@M)found:#*/}")
  found=("${(@)found:#(*/|)}")
  (( $#open )) && compadd -S '' -- "${open[@]}"
  (( $#found )) && compadd -- "${found[@]}"
}
if [[ $funcstack[1] == _pergola ]]; then
  _pergola
else
  (( $+functions[compdef] )) || { autoload -Uz compinit && compinit }
  compdef _pergola pergola kubectl-pergola
fi
"""
_FISH: Final = r"""# Completion of pergola for fish: pergola completion fish | source
function __pergola_complete
    set -l words (commandline -opc)
    set -l found ($words[1] __complete $words[2..-1] (commandline -ct) 2>/dev/null)
    if test "$found" = ":files"
        __fish_complete_path (commandline -ct)
    else
        printf '%s\n' $found
    end
end
complete -c pergola -c kubectl-pergola -f -a '(__pergola_complete)'
"""
_SCRIPTS: Final = {"bash": _BASH, "zsh": _ZSH, "fish": _FISH}
# What kubectl reads after the candidates, in the bits of cobra's ShellCompDirective.
_DEFAULT, _NO_SPACE, _NO_FILES = 0, 2, 4


def completion(shell: Literal["bash", "zsh", "fish"], /) -> None:
    """Print the script that completes command lines in a shell; changes no file.

    It completes commands, options, their values, kinds, and names of objects, namespaces and
    contexts. Bash: `source <(pergola completion bash)` in `~/.bashrc`. Zsh: the same with zsh in
    `~/.zshrc`. Fish: `pergola completion fish | source` in `config.fish`.

    Parameters
    ----------
    shell
        The shell that reads the script.
    """
    say(_SCRIPTS[shell], end="")


def print_candidates(app: "App", words: list[str]) -> None:
    """Print the candidates for the last of the words after `pergola`, for the scripts."""
    from pergola.cli.completion.candidates import candidates

    for candidate in candidates(app, words):
        say(candidate)


def for_kubectl() -> None:
    """Print the candidates as kubectl expects them from `kubectl_complete-pergola`."""
    from pergola.cli import app
    from pergola.cli.completion.candidates import FILES, candidates

    found = candidates(app, sys.argv[1:])
    if found == [FILES]:
        say(f":{_DEFAULT}")
        return
    for candidate in found:
        say(candidate)
    is_open = len(found) == 1 and found[0].endswith("/")
    say(f":{_NO_FILES | (_NO_SPACE if is_open else 0)}")
