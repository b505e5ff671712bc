"""``bestofn completion bash|zsh``: prints a script that completes commands, groups, choices and setting keys.

The script calls ``bestofn completion --words CURRENT WORD …``, which prints the possible words, one per line. This call
imports Hydra and the class of a choice only to complete the settings of this choice.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path

from bestofn.builders import choices as table
from bestofn.builders.config.arguments import Arguments, Command
from bestofn.builders.config.command import run_command
from bestofn.builders.config.help import config_dirs_in, settings_of_choice
from bestofn.builders.errors import BestofnError
from bestofn.scripts.catalogue import COMMANDS, COMPLETION

SCRIPTS = {
    "bash": """_bestofn() {
  local line="${COMP_LINE:0:$COMP_POINT}" word words before
  word="${line##*[[:space:]]}"
  read -ra words <<< "$line"
  [[ -z "$word" ]] && words+=("")
  local IFS=$'\\n'
  COMPREPLY=($(bestofn completion --words "$word" "${words[@]:1}" 2>/dev/null))
  case "$COMP_WORDBREAKS" in
    *=*) before="${word%"${word##*=}"}"; COMPREPLY=("${COMPREPLY[@]#"$before"}") ;;
  esac
  [[ "${COMPREPLY[*]}" == *[=.] ]] && compopt -o nospace 2>/dev/null
  return 0
}
complete -o default -F _bestofn bestofn
""",
    "zsh": """#compdef bestofn
_bestofn() {
  local -a found open
  found=("${(@f)$(bestofn completion --words "${words[CURRENT]}" "${(@)words[2,-1]}" 2>/dev/null)}")
  open=("${(@M)found:#*[=./]}")
  found=("${(@)found:#*[=./]}")
  (( $#open )) && [[ -n "$open[1]" ]] && compadd -S '' -a open
  (( $#found )) && [[ -n "$found[1]" ]] && compadd -a found
  [[ -z "$open$found" ]] && _files
}
compdef _bestofn bestofn
""",
}


def main(words: Sequence[str] | None = None) -> None:
    """Run ``bestofn completion``. ``words`` are its command-line arguments; None reads ``sys.argv``."""
    given = list(sys.argv[1:] if words is None else words)
    if given[:1] == ["--words"]:
        print("\n".join(candidates(given[1] if len(given) > 1 else "", given[2:])))
        return
    run_command(COMPLETION, script, given)


def script(arguments: Arguments) -> None:
    """Print the completion script for the shell ``SHELL``."""
    print(SCRIPTS[arguments.positionals["SHELL"][0]], end="")


def candidates(current: str, words: Sequence[str]) -> list[str]:
    """Return the possible completions of the word ``current``.

    ``words`` are all words after ``bestofn``, including ``current``.
    """
    if len(words) <= 1:
        return _beginning(current, COMMANDS)
    command = COMMANDS.get(words[0])
    if command is None:
        return []
    try:
        folders = table.folders_of(config_dirs_in(words)) if command.takes_config_dir else []
        return _beginning(current, [*_words(command, words), *_settings(command, current, words, folders)])
    except BestofnError:
        return []


def _beginning(current: str, words: Iterable[str]) -> list[str]:
    return sorted({word for word in words if word.startswith(current)})


def _words(command: Command, words: Sequence[str]) -> list[str]:
    """Return the options of a command, and the words that are possible at its positions."""
    found = [option for option in command.options if option.startswith("--")]
    for positional in command.positionals:
        found += positional.choices
        if positional.name == "RUN":
            found += _runs()
    return found


def _runs() -> list[str]:
    """Return the folders in runs/ that contain a manifest."""
    return [os.fspath(path.parent) for path in sorted(Path("runs").glob("*/manifest.json"))]


def _settings(command: Command, current: str, words: Sequence[str], folders: Sequence[Path]) -> list[str]:
    """Return ``key=`` for each setting. If ``current`` contains ``=``, return ``key=value`` for each known value."""
    if "=" in current:
        flags = [key for key, setting in command.settings.items() if setting.kind is bool]
        found = [f"{key}={value}" for key in flags for value in ("true", "false")]
    else:
        found = [f"{key}=" for key in command.settings]
    if not command.composed:
        return found
    defaults = table.default_choices(command.name)
    places = {group.partition("@")[2] or group: group for group in defaults}
    root, separator, _ = current.partition("=") if "=" in current else current.partition(".")
    if separator == "=" and table.PLACES.get(root, root) in defaults:
        return [f"{root}={name}" for name in table.choices_of(table.PLACES.get(root, root).partition("@")[0], folders)]
    if separator == "." and root in places:
        group = places[root].partition("@")[0]
        name = _chosen(places[root], words) or defaults[places[root]]
        return [f"{root}{one.key.removeprefix(group)}=" for one in settings_of_choice(group, name, folders)]
    words_of_their_own = {f"{positional.key}=" for positional in command.positionals}
    roots = [
        key
        for key in _keys(table.read_yaml(table.conf_folder() / f"{command.name}.yaml"))
        if key not in words_of_their_own
    ]
    names = {place: name for name, place in table.PLACES.items()}
    return [*found, *(f"{names.get(group, group)}=" for group in defaults), *(f"{place}." for place in places), *roots]


def _chosen(group: str, words: Sequence[str]) -> str:
    return next((word.partition("=")[2] for word in words if word.startswith(f"{group}=")), "")


def _keys(node: dict[str, object], where: str = "") -> list[str]:
    """Return ``key=`` for every value in a YAML file. A nested key has dots: ``sampling.top_p=``."""
    found = []
    for key, value in node.items():
        if key in ("defaults", "hydra", "_target_"):
            continue
        here = f"{where}.{key}" if where else key
        found += _keys(value, here) if isinstance(value, dict) and value else [f"{here}="]
    return found


if __name__ == "__main__":
    main()
