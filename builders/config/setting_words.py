"""Converts settings in Python or YAML to overrides."""

from __future__ import annotations

from collections.abc import Mapping

from bestofn.builders.config.choices import shipped_groups
from bestofn.builders.config.composition import quoted
from bestofn.builders.records import JsonObject


def settings_words(settings: JsonObject, where: str = "") -> list[str]:
    """Return one override per setting.

    The value of a group is a dict of its settings, or a text that names a choice.
    """
    words: list[str] = []
    for key, value in settings.items():
        if isinstance(value, Mapping):
            words += settings_words(value, f"{where}{key}.")
        elif not where and isinstance(value, str) and key in shipped_groups():
            words.append(f"{key}={value}")
        else:
            words.append(f"{where}{key}={quoted(value)}")
    return words
