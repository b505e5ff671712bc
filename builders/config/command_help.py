"""Writes the help of a command: ``bestofn COMMAND --help``.

For a command with a YAML file, the help shows the keys and comments of that file and the choices of its groups. If the
words contain a choice, as in ``bestofn build provider=vllm --help``, the help lists the settings of that choice.
"""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterator, Sequence
from pathlib import Path

from bestofn.builders.config import choices as table
from bestofn.builders.config.arguments import CONFIG_DIR, Command, Setting
from bestofn.builders.config.choice_settings import ChoiceSetting, comment_of, node_of, settings_of_choice
from bestofn.builders.config.source_signatures import signature
from bestofn.builders.errors import ConfigError

WIDTH = 118


def help_text(command: Command, words: Sequence[str] = ()) -> str:
    """Return the help of ``command``. If ``words`` contain group choices, return the help of these choices instead.

    Raises ``ConfigError`` if a choice is unknown.
    """
    folders = table.folders_of(_config_dirs(words), words) if command.takes_config_dir else []
    chosen = list(_chosen(words, folders)) if command.takes_config_dir else []
    if chosen:
        return "\n\n".join(_choice_help(group, name, folders) for group, name in chosen)
    parts = [f"usage: {usage(command)}", *_positionals(command)]
    if command.composed:
        parts += _composed_help(command, folders)
    else:
        parts.insert(1, _sentence(command.summary))
        parts += _plain_settings(command)
    return "\n\n".join([*parts, f"Example\n  {command.example}"])


def usage(command: Command) -> str:
    """Return the usage of the command in one line."""
    words = [f"bestofn {command.name}"]
    for positional in command.positionals:
        required = " ".join([positional.name] * max(positional.least, 1))
        words.append(required if positional.least else f"[{required}]")
        if positional.most is None:
            words.append(f"[{positional.name} …]")
    if command.composed and _groups(_text(command)):
        words.append("[group=choice …]")
    if command.composed or command.settings:
        words.append("[key=value …]")
    options = [option for option in command.options if option.startswith("--") and option in command.synonyms]
    return " ".join([*words, *(f"[{option}]" for option in options)])


def _config_dirs(words: Sequence[str]) -> list[str]:
    after = [words[place + 1] for place, word in enumerate(words[:-1]) if word == CONFIG_DIR]
    return after + [word.partition("=")[2] for word in words if word.startswith(f"{CONFIG_DIR}=")]


def _chosen(words: Sequence[str], folders: Sequence[Path]) -> Iterator[tuple[str, str]]:
    """Yield (group, choice) for each word such as ``provider=vllm``. Raises ``ConfigError`` if a choice is unknown."""
    groups = table.groups(folders) - {"experiment", "train"}
    for word in words:
        group, equals, name = word.partition("=")
        if equals and group in groups:
            if name not in (known := table.choices_of(group, folders)):
                raise ConfigError(table.unknown_choice(group, name, known))
            yield group, name


def _choice_help(group: str, name: str, folders: Sequence[Path]) -> str:
    """Return the help of one choice: its comment, the docstring of its class, and its settings."""
    choice = table.choices_of(group, folders)[name]
    target = str(node_of(choice, folders).get("_target_", ""))
    described = signature(target)
    parts = [f"{group}={name}" + (f"  ({target})" if target else "")]
    parts += [
        textwrap.indent(text, "  ") for text in (comment_of(choice), described.docstring if described else "") if text
    ]
    settings = settings_of_choice(group, name, folders)
    parts.append("Settings\n" + (_setting_table(settings) if settings else "  none"))
    return "\n\n".join(parts)


def _setting_table(settings: Sequence[ChoiceSetting]) -> str:
    """Return a table with one line per setting: key, default and type."""
    keys = max(len("key"), *(len(setting.key) for setting in settings)) + 2
    defaults = min(max(len("default"), *(len(setting.default) for setting in settings)), 40) + 2
    lines = [f"  {one.key:<{keys}}{_shortened(one.default):<{defaults}}{one.kind}".rstrip() for one in settings]
    return "\n".join([f"  {'key':<{keys}}{'default':<{defaults}}type", *lines])


def _shortened(text: str) -> str:
    return text if len(text) <= 40 else text[:39] + "…"


def _positionals(command: Command) -> list[str]:
    if not command.positionals:
        return []
    lines = []
    for positional in command.positionals:
        choices = f": {', '.join(positional.choices)}" if positional.choices else ""
        lines.append(f"  {positional.name:<12} {positional.text}{choices}")
    return ["\n".join(lines)]


def _plain_settings(command: Command) -> list[str]:
    """Return the settings of a command that has no YAML file, and the keys of ``bestofn build`` that it accepts."""
    parts = []
    if command.settings:
        parts.append("Settings\n" + "\n".join(_setting_line(key, one) for key, one in command.settings.items()))
    if command.open_keys and command.open_keys != ("*",):
        parts.append(
            textwrap.fill(
                f"These keys of `bestofn build` can be set too: {', '.join(command.open_keys)}.",
                WIDTH,
                break_on_hyphens=False,
            )
        )
    return parts


def _setting_line(key: str, setting: Setting) -> str:
    return textwrap.fill(f"  {f'{key}={setting.default_text}':<26} {setting.text}", WIDTH, subsequent_indent=" " * 29)


def _sentence(text: str) -> str:
    return f"{text[0].upper()}{text[1:]}."


def _composed_help(command: Command, folders: Sequence[Path]) -> list[str]:
    """Return help lines from the command's YAML file: top comment, groups and settings."""
    text = _text(command)
    parts = [re.sub(r"^# ?", "", _head(text), flags=re.MULTILINE).strip()]
    groups = _groups(text)
    if groups:
        lines = [_group_line(group, default, folders) for group, default in groups.items()]
        parts.append("Groups\n" + "\n".join(lines))
    parts.append("Settings\n" + textwrap.indent(_yaml_settings(text, command), "  "))
    parts.append(_more(command, bool(groups)))
    return parts


def _more(command: Command, groups: bool) -> str:
    lines = [f"`bestofn {command.name} … --cfg job` prints the whole configuration; every key in it can be set."]
    if groups:
        lines.append(f"`bestofn {command.name} GROUP=CHOICE --help` lists the settings of a choice.")
        lines.append("`--config-dir DIR` adds the choices in DIR/GROUP/NAME.yaml.")
    lines.append("`-m` runs every combination of values that are separated by commas.")
    return "\n".join(lines)


def _text(command: Command) -> str:
    return (table.conf_folder() / f"{command.name}.yaml").read_text(encoding="utf-8")


def _head(text: str) -> str:
    """Return the comment at the top of the YAML text; "" if it has none."""
    match = re.match(r"(?:#.*\n)*", text)
    return match.group() if match else ""


def _groups(text: str) -> dict[str, str]:
    """Return the default choice of each group, read from the defaults list of the YAML text."""
    listed = re.findall(r"^\s+- ([\w@]+): ([\w/]+)", _section(text, "defaults"), re.MULTILINE)
    return {group: choice for group, choice in listed if not group.startswith("hydra")}


def _group_line(group: str, default: str, folders: Sequence[Path]) -> str:
    """Return the help line of one group, which lists all choices. It is wrapped to ``WIDTH`` characters."""
    names = sorted(table.choices_of(group.partition("@")[0], folders))
    label = f"  {group} [{default}]"
    return textwrap.fill(f"{label:<24} {'  '.join(names)}", WIDTH, subsequent_indent=" " * 25, break_on_hyphens=False)


def _yaml_settings(text: str, command: Command) -> str:
    """Return only the settings of the YAML text.

    The top comment, the defaults list, Hydra's section and the settings that are positional arguments are omitted.
    """
    body = text.removeprefix(_head(text))
    for name in ("defaults", "hydra", *(positional.key for positional in command.positionals if positional.key)):
        body = body.replace(_section(body, name), "")
    return body.strip()


def _section(text: str, name: str) -> str:
    """Return the text of the top-level key ``name`` and its indented block; "" if the key is missing."""
    match = re.search(rf"^{name}:.*\n(?:[ \t]+.*\n|\n)*", text, re.MULTILINE)
    return match.group() if match else ""
