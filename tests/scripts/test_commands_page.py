"""docs/commands.md lists every command with its example and every setting with its default."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
import yaml

from bestofn.builders.config.arguments import parse
from bestofn.builders.config.composition import conf_folder
from bestofn.scripts.catalogue import COMMANDS

PAGE = (Path(__file__).resolve().parents[2] / "docs" / "commands.md").read_text(encoding="utf-8")


def section(name: str) -> str:
    """Return the text of the page between the heading ``name`` and the next heading."""
    return re.split(r"^## ", PAGE.partition(f"\n## {name}\n")[2], maxsplit=1, flags=re.MULTILINE)[0]


@pytest.mark.parametrize("name", COMMANDS)
def test_the_page_lists_every_setting(name: str) -> None:
    command, text = COMMANDS[name], section(name)
    assert f"```sh\n{command.example}\n```" in text
    keys = set(re.findall(r"^\| `(\w+)` \| `", text, re.MULTILINE))
    if command.composed:
        document = yaml.safe_load((conf_folder() / f"{name}.yaml").read_text(encoding="utf-8"))
        hidden = {"defaults", "hydra", "stages", *(positional.key for positional in command.positionals)}
        assert keys == set(document) - hidden
        for key in keys:
            default = document[key]
            if not isinstance(default, dict | list):
                shown = default if isinstance(default, str) and default else json.dumps(default).replace('"', "'")
                assert f"| `{key}` | `{shown}` |" in text
    else:
        assert keys == set(command.settings)
        for key, setting in command.settings.items():
            assert f"| `{key}` | `{setting.default_text}` | {setting.text} |" in text


@pytest.mark.parametrize("name", COMMANDS)
def test_the_example_of_each_command_parses(name: str) -> None:
    words = COMMANDS[name].example.partition(" > ")[0].split()
    assert words[:2] == ["bestofn", name]
    parse(COMMANDS[name], words[2:])
