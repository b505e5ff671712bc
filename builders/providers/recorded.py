"""Reads existing answers from the dataset. The answers can be verified, scored and paired without sampling.

Selected with ``provider=recorded``; read by ``builders.stages.generate``.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from bestofn.builders.errors import ConfigError
from bestofn.builders.formats.recorded_dialogue import recorded_dialogue
from bestofn.builders.records import Candidate, JsonObject, Query


class Recorded:
    """Reads existing answers from ``query.metadata[field]``. No request is sent. Implements ``Archive``.

    The field contains a list of answers. Each answer is a text, a message, or a list of messages. A list of messages is
    a whole conversation: assistant, tool, assistant, and so on. The model name of the answers is ``model`` if it is
    set, otherwise ``metadata["model"]``.

    Thinking is removed from the answers and stored in ``Candidate.reasoning``, as for answers of an API. An answer that
    ends within its thinking has the stop reason ``length``.
    """

    name = "recorded"

    def __init__(self, *, model: str = "recorded", field: str = "candidates") -> None:
        self.model = model
        self.field = field

    @property
    def identity(self) -> str:
        """The name of the provider and the name of the metadata field."""
        return f"{self.name} {self.field}"

    def answers_for(self, query: Query) -> list[Candidate]:
        """Return the recorded answers to ``query``. Raises ``ConfigError`` if a recorded value is not an answer."""
        recorded = query.metadata.get(self.field) or ()
        if isinstance(recorded, str | Mapping):
            recorded = (recorded,)
        model = self.model if self.model != "recorded" else str(query.metadata.get("model") or self.model)
        return [_candidate(index, _messages(answer, query.id), model) for index, answer in enumerate(recorded)]


def _candidate(index: int, messages: tuple[JsonObject, ...], model: str) -> Candidate:
    dialogue = recorded_dialogue(messages)
    return Candidate(
        index=index,
        messages=dialogue.messages,
        model=model,
        stop_reason="length" if dialogue.cut else "stop",
        reasoning=dialogue.reasoning,
    )


def _messages(answer: Any, query_id: str) -> tuple[JsonObject, ...]:
    if isinstance(answer, str):
        return ({"role": "assistant", "content": answer},)
    if isinstance(answer, Mapping):
        return ({"role": "assistant", **answer},)
    if isinstance(answer, Sequence) and all(isinstance(message, Mapping) for message in answer):
        return tuple(answer)
    raise ConfigError(
        f"query {query_id}: a recorded answer is {answer!r:.200}; expected a text, a message, or a list of messages"
    )
