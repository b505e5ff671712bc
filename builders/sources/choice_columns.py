"""Reads the setting ``dataset.choices``: the options and the gold answer of multiple-choice questions."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from bestofn.builders.errors import SourceError
from bestofn.builders.formats.multiple_choice import (
    LETTERS,
    gold_options,
    letters_of,
    listed_options,
    with_options,
    without_labels,
)
from bestofn.builders.formats.nearest_match import did_you_mean
from bestofn.builders.records import JsonObject, Message, content_text
from bestofn.builders.sources.values import as_list

GOLD_FORMS = ("auto", "letter", "index", "index_from_1", "text")


@dataclass(frozen=True, slots=True)
class ChoiceColumns:
    """The setting ``dataset.choices``.

    ``gold``: the form of the gold answer. ``auto``: a number is an index from 0; a text is a letter, several letters or
    the text of an option. ``index_from_1``: the first option has the number 1.
    ``in_prompt``: whether the options are added to a prompt that does not list them.
    ``shuffle``: whether the options get a random order, which depends only on the question and the options. Set it
    if the first option is correct in every row.
    """

    gold: str = "auto"
    in_prompt: bool = True
    shuffle: bool = False

    @classmethod
    def of(cls, settings: JsonObject) -> ChoiceColumns:
        """Build the object from the configuration. Raises ``SourceError`` if a setting or its value is unknown."""
        for key in settings:
            if key not in cls.__slots__:
                hint = did_you_mean(str(key), cls.__slots__)
                raise SourceError(
                    f"dataset.choices.{key}: unknown setting{hint} Settings are {', '.join(cls.__slots__)}."
                )
        choices = cls(**{str(key): value for key, value in settings.items()})
        if choices.gold not in GOLD_FORMS:
            raise SourceError(f"dataset.choices.gold is {choices.gold!r}; expected one of {', '.join(GOLD_FORMS)}.")
        return choices

    def options(self, value: object) -> Options:
        """Return the options in ``value``, the value of the column ``choices``.

        The value is a list of texts, ``{"text": [...], "label": [...]}`` (ARC), or a mapping from letters to texts. A
        value with fewer than two options gives an ``Options`` without texts.
        """
        labels: list[object] = []
        if isinstance(value, Mapping):
            texts = value.get("text", value.get("choices"))
            labels = as_list(value.get("label")) if texts is not None else list(value)
            value = texts if texts is not None else list(value.values())
        texts = without_labels([str(item) for item in as_list(value) if item is not None])
        if len(texts) < 2:
            return Options()
        names = tuple(str(label) for label in labels) if len(labels) == len(texts) else ()
        return Options(tuple(texts), names)

    def gold_answer(self, value: object, options: Options) -> str | None:
        """Return the letters of the options that ``value`` names; None if it names none, or is ambiguous."""
        items = value if isinstance(value, list | tuple) else [value]
        found = [self._gold(item, options) for item in items]
        named = [item for item in found if item is not None]
        return letters_of(frozenset().union(*named)) if named and len(named) == len(found) else None

    def _gold(self, value: object, options: Options) -> frozenset[int] | None:
        if isinstance(value, float) and value.is_integer():
            value = int(value)  # pandas reads a column of integers with gaps as floats
        text = "" if value is None else str(value).strip()
        if text in options.labels and self.gold in ("auto", "letter"):
            return frozenset({options.labels.index(text)})
        is_number = isinstance(value, int) and not isinstance(value, bool)
        if self.gold in ("index", "index_from_1") or (self.gold == "auto" and is_number):
            index = int(text) - (self.gold == "index_from_1") if re.fullmatch(r"\d{1,3}", text, re.ASCII) else -1
            if 0 <= index < len(options.texts):
                return frozenset({index})
            return gold_options(text, options.texts) if self.gold == "auto" else None
        if self.gold == "text":
            same = [index for index, option in enumerate(options.texts) if option.strip() == text]
            return frozenset(same) if len(same) == 1 else None
        return gold_options(text, () if self.gold == "letter" else options.texts)

    def shuffled(self, options: Options, gold: str | None, question: str) -> tuple[Options, str | None]:
        """Return ``options`` in random order, and the new letters of the options that ``gold`` names.

        The order does not change if ``question`` already lists the options.
        """
        if not self.shuffle or len(listed_options(question)) >= len(options.texts):
            return options, gold
        order = sorted(range(len(options.texts)), key=lambda index: _hash(question, options.texts[index]))
        letters = {LETTERS[old]: new for new, old in enumerate(order)}
        moved = None if gold is None else letters_of([letters[letter] for letter in gold.split(", ")])
        return Options(tuple(options.texts[index] for index in order), ()), moved

    def with_prompt(self, messages: Sequence[Message], options: Options) -> list[Message]:
        """Return ``messages`` with the options in the last user message, unless it lists them already."""
        if not (self.in_prompt and options.texts):
            return list(messages)
        last = max(place for place, message in enumerate(messages) if message.get("role") == "user")
        content = messages[last].get("content")
        if not isinstance(content, str):
            text = content_text(content)
            added = with_options(text, options.texts)[len(text.rstrip()) :]
            parts: list[object] = [*as_list(content), *([{"type": "text", "text": added}] if added.strip() else [])]
            return [*messages[:last], {**messages[last], "content": parts}, *messages[last + 1 :]]
        return [
            *messages[:last],
            {**messages[last], "content": with_options(content, options.texts)},
            *messages[last + 1 :],
        ]


@dataclass(frozen=True, slots=True)
class Options:
    """The options of one question: their texts, and the labels of the dataset if it has any."""

    texts: tuple[str, ...] = ()
    labels: tuple[str, ...] = ()


def _hash(*texts: str) -> bytes:
    return hashlib.sha256("\0".join(texts).encode()).digest()
