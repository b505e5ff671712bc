"""NVIDIA's Nemotron post-training datasets, versions 1 and 2; each split comes from the version that has it.

Version 1 is open. Its splits are chat, code, math, stem and tool_calling. Its tools are in ``metadata`` as JSON text.
The prompt of a code row is "-". With ``origins``, its question and tests are read from the original table; otherwise
the row is left out. Version 2 requires an agreement. Its splits are math, code, stem, chat and five languages. It has
no metadata and no tool calls. In both versions, a model wrote the answers, so the source of the reference is ``model``,
not ``gold``.
"""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence

from bestofn.builders.errors import SourceError
from bestofn.builders.records import Count, JsonObject, PositiveCount, Query
from bestofn.builders.sources.mapped import Mapped, shares_of
from bestofn.builders.sources.origins import Origins

log = logging.getLogger(__name__)

PATHS = {1: "nvidia/Nemotron-Post-Training-Dataset-v1", 2: "nvidia/Nemotron-Post-Training-Dataset-v2"}
SPLITS = {
    1: ("chat", "code", "math", "stem", "tool_calling"),
    2: ("math", "code", "stem", "chat", *(f"multilingual_{language}" for language in ("ja", "de", "it", "es", "fr"))),
}
PREFERRED_VERSION = {"math": 2, "code": 2, "stem": 2, "chat": 2, "tool_calling": 1}
ANSWER = {"path": "messages[-1].content", "take": "boxed"}


class Nemotron:
    """The queries of ``splits`` of version 1 or 2.

    If ``version`` is None, a split comes from its version in ``PREFERRED_VERSION``, or from the only version that has
    it. If ``version`` lacks a split, the other version is used, with a warning; with ``strict``, this is an error. With
    ``origins``, ``code`` comes from version 1, because its rows name the original rows that hold the tests. ``paths``
    names local copies to read instead of the Hub: {1: FOLDER, 2: FOLDER}, with a subfolder per split. ``max_queries``
    limits the queries in total; it is spread evenly over the splits.
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
        offset: Count = 0,
        max_queries: PositiveCount | None = None,
        min_query_chars: int = 1,
        license: str = "",
    ) -> None:
        self.license = license
        names = [split.strip() for split in splits.split(",")] if isinstance(splits, str) else list(splits)
        self.skipped: Counter[str] = Counter()
        code_version = 1 if origins is not None and version is None else version
        self.routes = {split: route(split, code_version if split == "code" else version, strict) for split in names}
        local = {str(key): value for key, value in (paths or {}).items()}
        shares = shares_of(max_queries, len(self.routes))
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
                max_queries=share,
                min_query_chars=min_query_chars,
            )
            for (split, chosen), share in zip(self.routes.items(), shares, strict=True)
        ]

    def __iter__(self) -> Iterator[Query]:
        self.skipped.clear()
        for source in self._sources:
            try:
                yield from source
            finally:  # also if the caller stops early
                self.skipped.update(source.skipped)


def route(split: str, version: int | None, strict: bool = False) -> int:
    """Return the version from which ``split`` is read.

    Raises ``SourceError`` if no version has the split, if ``version`` is unknown, or if ``strict`` is set and
    ``version`` lacks the split.
    """
    owner = next((number for number, splits in SPLITS.items() if split in splits), None)
    if version is None:
        if owner is None:
            raise SourceError(
                f"dataset.splits contains {split!r}; Nemotron v1 has {list(SPLITS[1])}, and v2 has {list(SPLITS[2])}"
            )
        return PREFERRED_VERSION.get(split, owner)
    if version not in SPLITS:
        raise SourceError(f"dataset.version is {version}; expected one of {sorted(SPLITS)}")
    if split in SPLITS[version]:
        return version
    if strict or owner is None:
        raise SourceError(f"dataset.splits contains {split!r}; Nemotron v{version} has {list(SPLITS[version])}")
    log.warning("Nemotron v%s has no split %s. The split is read from v%s.", version, split, owner)
    return owner


def _columns(version: int, split: str) -> JsonObject:
    columns: dict[str, object] = {"id": "uuid", "messages": "messages"}
    if split in ("math", "stem") or split.startswith("multilingual"):
        columns["reference"] = ANSWER
    if split == "tool_calling":
        columns["tools"] = {"path": "metadata", "json": True, "then": "tools"}
    if (version, split) == (1, "code"):
        columns["origin"] = {"path": "metadata", "json": True}
    return columns
