"""NVIDIA's Nemotron post-training datasets, both versions, each split from the version that has it.

Version 1 (open): chat, code, math, stem, tool_calling; tools stand in ``metadata`` as JSON. Its code prompts are "-":
with ``origins`` they are found again in the tables they came from, tests included; without, they are left out and
counted. Version 2 (asks for agreement): math, code, stem, chat and five languages; no
metadata, no tool calls. The answers are a model's own, so the reference is ``model``, not ``gold``.
"""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from bestofn.builders.errors import SourceError
from bestofn.builders.records import Query
from bestofn.builders.sources.mapped import Mapped
from bestofn.builders.sources.origins import Origins

log = logging.getLogger(__name__)

PATHS = {1: "nvidia/Nemotron-Post-Training-Dataset-v1", 2: "nvidia/Nemotron-Post-Training-Dataset-v2"}
HAS = {
    1: ("chat", "code", "math", "stem", "tool_calling"),
    2: ("math", "code", "stem", "chat", *(f"multilingual_{language}" for language in ("ja", "de", "it", "es", "fr"))),
}
PREFERRED = {"math": 2, "code": 2, "stem": 2, "chat": 2, "tool_calling": 1}
ANSWER = {"path": "messages[-1].content", "take": "boxed"}


class Nemotron:
    """Queries of ``splits``, each from ``version``, or where that is None from the version that has the split.

    Asking version 2 for tool_calling goes to version 1 with a notice; with ``strict`` it is an error that names the
    splits there are. ``origins`` sends ``code`` to version 1, whose rows say where their tests are. ``paths`` puts
    local copies in the place of the Hub's: {1: FOLDER, 2: FOLDER}, a folder a split.
    """

    name = "nemotron"

    def __init__(
        self,
        *,
        splits: Sequence[str] | str = ("math",),
        version: int | None = None,
        strict: bool = False,
        paths: Mapping[str, str] | None = None,
        origins: Origins | None = None,
        streaming: bool = True,
        offset: int = 0,
        max_queries: int | None = None,
        min_query_chars: int = 1,
    ) -> None:
        wanted = [split.strip() for split in splits.split(",")] if isinstance(splits, str) else list(splits)
        self.skipped: Counter[str] = Counter()
        tested = 1 if origins is not None and version is None else version
        self.routes = {split: route(split, tested if split == "code" else version, strict) for split in wanted}
        local = {str(key): value for key, value in (paths or {}).items()}
        self._sources = [
            Mapped(
                f"{local[str(chosen)]}/{split}" if str(chosen) in local else PATHS[chosen],
                name=f"nemotron-v{chosen}",
                split=split,
                domain=split,
                columns=_columns(chosen, split),
                turns="first",
                reference_source="model",
                origins=origins if (chosen, split) == (1, "code") else None,
                streaming=streaming,
                offset=offset,
                max_queries=max_queries,
                min_query_chars=min_query_chars,
            )
            for split, chosen in self.routes.items()
        ]

    def __iter__(self) -> Iterator[Query]:
        self.skipped.clear()
        for source in self._sources:
            try:
                yield from source
            finally:  # also when nobody asks for more
                self.skipped.update(source.skipped)


def route(split: str, version: int | None, strict: bool = False) -> int:
    """The version that ``split`` is taken from. Raises ``SourceError`` with the real splits."""
    if version is None:
        if split in PREFERRED:
            return PREFERRED[split]
        found = next((number for number, splits in HAS.items() if split in splits), None)
        if found is None:
            raise SourceError(f"dataset.splits names {split!r}; Nemotron has v1 {list(HAS[1])} and v2 {list(HAS[2])}")
        return found
    if version not in HAS:
        raise SourceError(f"dataset.version is {version}; Nemotron has versions {sorted(HAS)}")
    if split in HAS[version]:
        return version
    other = next((number for number, splits in HAS.items() if split in splits), None)
    if strict or other is None:
        raise SourceError(f"dataset.splits names {split!r}; Nemotron v{version} has {list(HAS[version])}")
    log.warning("Nemotron v%s has no split %s: it is taken from v%s", version, split, other)
    return other


def _columns(version: int, split: str) -> dict[str, Any]:
    columns: dict[str, Any] = {"id": "uuid", "messages": "messages"}
    if split in ("math", "stem") or split.startswith("multilingual"):
        columns["answer"] = ANSWER
    if split == "tool_calling":
        columns["tools"] = {"path": "metadata", "json": True, "then": "tools"}
    if (version, split) == (1, "code"):
        columns["origin"] = {"path": "metadata", "json": True}
    return columns
