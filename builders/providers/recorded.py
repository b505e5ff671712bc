"""Answers that the dataset holds already: bring your own and have them verified, scored and paired."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from bestofn.builders.errors import ConfigError
from bestofn.builders.records import Candidate, Query


class Recorded:
    """The answers in ``query.metadata[field]``: a list of texts, of messages, or of lists of messages.

    A list of messages is a whole trace (assistant, tool, assistant …). Nothing is asked, nothing is paid.
    ``metadata["model"]`` says who wrote them, unless ``model`` does.
    """

    name = "recorded"

    def __init__(self, *, model: str = "recorded", field: str = "candidates") -> None:
        self.model = model
        self.field = field

    @property
    def identity(self) -> str:
        return f"{self.name} {self.field}"

    def answers_for(self, query: Query) -> list[Candidate]:
        """Raises ``ConfigError`` for something that is no answer."""
        kept = query.metadata.get(self.field) or ()
        if isinstance(kept, str | Mapping):
            kept = (kept,)
        model = self.model if self.model != "recorded" else str(query.metadata.get("model") or self.model)
        return [
            Candidate(index=index, messages=_messages(answer, query.id), model=model)
            for index, answer in enumerate(kept)
        ]


def _messages(answer: Any, query_id: str) -> tuple[Mapping[str, Any], ...]:
    if isinstance(answer, str):
        return ({"role": "assistant", "content": answer},)
    if isinstance(answer, Mapping):
        return ({"role": "assistant", **answer},)
    if isinstance(answer, Sequence) and all(isinstance(message, Mapping) for message in answer):
        return tuple(answer)
    raise ConfigError(
        f"query {query_id}: a recorded answer is {answer!r:.200}; expected a text, a message, or a list of messages"
    )
