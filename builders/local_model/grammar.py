"""Rules that change the logits of one answer: biases, penalties for repetition, and a grammar. Used by ``batches``.

The library llguidance compiles grammars: a JSON Schema, or one call of a tool.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from bestofn.builders.errors import RequestError, ServiceError
from bestofn.builders.records import JsonObject, Tool

if TYPE_CHECKING:
    from llguidance import LLMatcher, LLTokenizer
    from torch import Tensor

COMPACT = {"whitespace_flexible": False, "item_separator": ", ?", "key_separator": ": ?"}
"""JSON on one line: a model that may write any white space can write it until its last token."""

OPEN = {"additionalProperties", "unevaluatedProperties", "patternProperties", "allOf", "anyOf", "oneOf", "$ref"}
"""Keywords by which an object may have keys that its ``properties`` do not list."""


def grammar_of(schema: JsonObject | None, tools: Sequence[Tool]) -> str:
    """Return the grammar of an answer: JSON for ``schema``, or a call of one of ``tools`` as ``<tool_call>``.

    Keywords that llguidance cannot honour are ignored in the parameters of a tool. In ``schema`` they are an error of
    ``compiled``.
    """
    forms = [] if schema is None else [f"%json {_json({**_closed(schema), 'x-guidance': COMPACT})}"]
    forms += [_call(tool["function"]) for tool in tools]
    rules = [f"form{place}: {form}" for place, form in enumerate(forms)]
    return "\n".join([f"start: {' | '.join(f'form{place}' for place in range(len(forms)))}", *rules])


def _call(function: JsonObject) -> str:
    head = f'<tool_call>\n{{"name": {_json(function["name"])}, "arguments": '
    parameters = _closed({"type": "object", "properties": {}, **(function.get("parameters") or {})})
    schema = {**parameters, "x-guidance": {**COMPACT, "lenient": True}}
    return f"{_json(head)} %json {_json(schema)} {_json('}' + chr(10) + '</tool_call>')}"


def _closed(schema: Any) -> Any:
    """Return ``schema``, in which objects with ``properties`` have no other keys, unless the schema says otherwise.

    A model that may invent further keys can invent them until its last token.
    """
    if not isinstance(schema, dict):
        return schema
    closed = dict(schema)
    for key in ("properties", "$defs", "definitions"):
        if isinstance(schema.get(key), dict):
            closed[key] = {name: _closed(part) for name, part in schema[key].items()}
    for key in ("anyOf", "oneOf", "prefixItems"):
        if isinstance(schema.get(key), list):
            closed[key] = list(map(_closed, schema[key]))
    if "items" in schema:
        closed["items"] = _closed(schema["items"])
    if "properties" in schema and not schema.keys() & OPEN:
        closed["additionalProperties"] = False
    return closed


def _json(value: object) -> str:
    return json.dumps(value, ensure_ascii=False)


def token_vocabulary(tokenizer: Any, size: int, ends: Sequence[int]) -> LLTokenizer:
    """Return the vocabulary of ``tokenizer`` for grammars. ``size`` is the number of logits; ``ends`` end an answer."""
    from llguidance.hf import from_tokenizer

    try:
        return from_tokenizer(tokenizer, n_vocab=size, eos_token=[end for end in ends if end < size] or None)
    except ValueError as error:
        raise RequestError(
            f"the answers of this model cannot be restricted: {error}. Leave out the schema and the tool choice "
            "required, and check the answers after they are sampled.",
            status=400,
        ) from error


def compiled(grammar: str, vocabulary: LLTokenizer) -> LLMatcher:
    """Return the matcher of ``grammar`` before the first token.

    Raises ``RequestError`` if the grammar has a keyword that llguidance cannot honour, or allows no answer.
    """
    from llguidance import LLMatcher

    whole = LLMatcher.grammar_from_lark(grammar)
    problem = LLMatcher.validate_grammar(whole, vocabulary)
    if not problem:
        matcher = LLMatcher(vocabulary, whole, log_level=0)
        matcher.compute_bitmask()
        if not matcher.is_error():
            return matcher.deep_copy()
        problem = "it allows no value"
    raise RequestError(
        f"the answers cannot be restricted to the JSON Schema or the tools: {problem:.300}. Change the schema. Or "
        "leave it out, and check the answers after they are sampled.",
        status=400,
    )


@dataclass(frozen=True)
class RuleSettings:
    """The rules of a request: OpenAI's ``logit_bias`` and penalties, and the grammar of its answers."""

    logit_bias: Mapping[int, float] = field(default_factory=dict)
    frequency_penalty: float = 0.0
    presence_penalty: float = 0.0
    grammar: LLMatcher | None = None

    def __bool__(self) -> bool:
        return bool(self.logit_bias or self.frequency_penalty or self.presence_penalty or self.grammar)


class TokenRules:
    """Applies ``settings`` to the logits of one answer, token by token."""

    def __init__(self, settings: RuleSettings) -> None:
        self._settings = settings
        self._counts: Counter[int] = Counter()
        self._matcher = settings.grammar.deep_copy() if settings.grammar else None

    def adjusted(self, logits: Tensor) -> Tensor:
        """Return ``logits`` with the rules applied, for the next token. Shape: (vocabulary,)."""
        import torch

        settings, result = self._settings, logits.clone()
        for token, bias in settings.logit_bias.items():
            result[token] += bias
        if settings.frequency_penalty or settings.presence_penalty:
            for token, count in self._counts.items():
                result[token] -= count * settings.frequency_penalty + settings.presence_penalty
        if self._matcher is None:
            return result
        bits = np.frombuffer(self._matcher.compute_bitmask(), np.uint8)
        allowed = torch.from_numpy(np.unpackbits(bits, bitorder="little", count=len(result)).astype(bool))
        return result.masked_fill(~allowed.to(result.device), -torch.inf)

    def add(self, token: int) -> None:
        """Continue after ``token``. Raises ``ServiceError`` if the grammar has become too complex."""
        self._counts[token] += 1
        if self._matcher is not None and not self._matcher.is_stopped() and not self._matcher.consume_token(token):
            raise ServiceError(f"the grammar of the answer failed: {self._matcher.get_error():.300}")

    @property
    def is_complete(self) -> bool:
        """Whether the grammar allows no further text."""
        return self._matcher is not None and self._matcher.is_stopped()
