"""The nouns of bestofn: plain facts that travel between stages, providers, verifiers and rewards.

Everything here is frozen and has no behaviour beyond a property. A *message* is a dict in the Chat
Completions shape (``role``, ``content``, and where they apply ``tool_calls``, ``tool_call_id``, ``name``),
because that is what providers speak and what TRL trains on; nothing else travels as a bare dict.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

Message = Mapping[str, Any]
"""One chat message in the Chat Completions shape."""

Tool = Mapping[str, Any]
"""One tool declaration: ``{"type": "function", "function": {"name", "description", "parameters"}}``."""

JsonObject = Mapping[str, Any]
"""A decoded JSON object whose keys are not known in advance."""

Row = Mapping[str, Any]
"""One row of a dataset: column name -> value."""

Outcome = Literal["pass", "fail", "abstain", "error"]
Language = Literal["python", "javascript", "bash", "sql"]
TestKind = Literal["stdin", "function", "asserts", "check", "output", "sql"]
ReferenceSource = Literal["gold", "model", "none"]
StopReason = Literal["stop", "length", "tool_calls", "refusal", "content_filter", "error"]
Arm = Literal["sample", "greedy"]
ToolChoice = Literal["auto", "none", "required"]


@dataclass(frozen=True, slots=True)
class Persona:
    """A voice laid over the answers; ``text`` goes into the system prompt, never into the stored prompt."""

    name: str
    text: str
    affect: str = ""
    markers: tuple[str, ...] = ()  # regular expressions that show the voice
    whitelist: tuple[str, ...] = ()  # phrases that look like a refusal and are only the voice


@dataclass(frozen=True, slots=True)
class CodeTests:
    """How a program is judged.

    ``kind`` decides what a case holds:

    ========  ===========================================================================
    stdin     ``{"stdin": str, "stdout": str}``
    function  ``{"args": [...], "kwargs": {...}?, "expected": value}`` for ``entry_point``; ``also``: a list of
              further right results; ``json``: they were written in JSON, so that a tuple will do for a list
    asserts   ``{"source": "assert f(1) == 2"}`` (MBPP)
    check     one case ``{"source": "def check(candidate): ..."}`` for ``entry_point`` (HumanEval)
    output    ``{"stdout": str}``: the program runs without input
    sql       ``{"setup": sql, "expected": [[...], ...] or "reference": sql, "ordered": bool}``
    ========  ===========================================================================
    """

    kind: TestKind
    language: Language
    cases: tuple[Mapping[str, Any], ...]
    entry_point: str = ""
    setup: str = ""  # source placed before the candidate (imports, a given prefix, tables)
    timeout_s: float | None = None  # wall-clock seconds for one case; None = the verifier's own


@dataclass(frozen=True, slots=True)
class Reference:
    """What is known to be right about a query. All empty: nothing can be verified, verifiers abstain."""

    answer: str | None = None
    answers: tuple[str, ...] = ()  # further accepted answers: any one of them is right
    choices: tuple[str, ...] = ()  # the options of a multiple-choice problem, in order
    tests: CodeTests | None = None
    calls: tuple[Mapping[str, Any], ...] | None = None  # expected tool calls; () means: no call expected
    facts: tuple[str, ...] = ()  # strings a right final answer must contain
    state: Mapping[str, Any] | None = None  # expected final world state of stateful tools
    source: ReferenceSource = "gold"


@dataclass(frozen=True, slots=True)
class Query:
    """One prompt of the dataset."""

    id: str
    split: str
    messages: tuple[Message, ...]
    tools: tuple[Tool, ...] = ()
    reference: Reference = field(default_factory=Reference)
    source: str = ""  # the dataset the query came from
    metadata: Mapping[str, Any] = field(default_factory=dict)

    @property
    def text(self) -> str:
        """The last user message as plain text."""
        for message in reversed(self.messages):
            if message.get("role") == "user":
                return content_text(message.get("content"))
        return ""


@dataclass(frozen=True, slots=True)
class Sampling:
    """How answers are drawn. Everything here changes the answer and is part of the journal key."""

    temperature: float | None = 1.0
    top_p: float | None = None
    max_tokens: int | None = None
    stop: tuple[str, ...] = ()
    seed: int | None = None  # base seed; sample i uses seed + i where the provider takes seeds
    effort: str | None = None  # reasoning effort, where the provider has it
    thinking_tokens: int | None = None  # extended-thinking budget, where the provider has it
    logprobs: bool = False
    extra: Mapping[str, Any] = field(default_factory=dict)  # provider-specific request fields


@dataclass(frozen=True, slots=True)
class Request:
    """Everything that changes an answer, and nothing else."""

    messages: tuple[Message, ...]
    tools: tuple[Tool, ...] = ()
    sampling: Sampling = field(default_factory=Sampling)
    schema: Mapping[str, Any] | None = None  # JSON Schema of a structured answer
    tool_choice: ToolChoice = "auto"  # "none": the tools stay declared, and the model must answer in words


@dataclass(frozen=True, slots=True)
class Usage:
    """Tokens as the provider counted them. ``cached`` and ``cache_write`` are part of ``prompt``, ``cache_hour`` (what
    is written for an hour) of ``cache_write``, ``reasoning`` of ``completion``."""

    prompt: int = 0
    completion: int = 0
    cached: int = 0
    cache_write: int = 0
    reasoning: int = 0
    cache_hour: int = 0

    def __add__(self, other: Usage) -> Usage:
        return Usage(  # field by field: this is done for every answer
            self.prompt + other.prompt,
            self.completion + other.completion,
            self.cached + other.cached,
            self.cache_write + other.cache_write,
            self.reasoning + other.reasoning,
            self.cache_hour + other.cache_hour,
        )


@dataclass(frozen=True, slots=True)
class Completion:
    """One sampled answer of a provider."""

    message: Message
    model: str
    stop_reason: StopReason = "stop"
    reasoning: str = ""
    usage: Usage = field(default_factory=Usage)
    seconds: float = 0.0  # wall-clock time of the call that brought it
    logprob: float | None = None  # sum of token log-probabilities, where known
    request_id: str = ""
    detail: Mapping[str, Any] = field(default_factory=dict)  # signatures, raw blocks: what a follow-up turn needs
    cost_usd: float | None = None  # what was paid for it, told by the sampler; None: no price is known

    @property
    def text(self) -> str:
        """The visible text of the answer."""
        return content_text(self.message.get("content"))


@dataclass(frozen=True, slots=True)
class Candidate:
    """One answer to a query: the messages that follow its prompt, or the error that took their place."""

    index: int
    messages: tuple[Message, ...] = ()
    attempt: int = 0
    model: str = ""
    stop_reason: StopReason = "stop"
    reasoning: str = ""
    usage: Usage = field(default_factory=Usage)
    seconds: float = 0.0
    cost_usd: float | None = None  # None: no price is known for the model
    logprob: float | None = None
    seed: int | None = None
    arm: Arm = "sample"
    variant: str = ""  # name of the prompt variant, if any
    detail: Mapping[str, Any] = field(default_factory=dict)
    error: str = ""

    @property
    def text(self) -> str:
        """The visible text of the last assistant message; "" when there is none."""
        for message in reversed(self.messages):
            if message.get("role") == "assistant":
                return content_text(message.get("content"))
        return ""

    @property
    def tool_calls(self) -> tuple[Mapping[str, Any], ...]:
        """All tool calls of the trace, in order, in the Chat Completions shape."""
        return tuple(call for message in self.messages for call in message.get("tool_calls") or ())


@dataclass(frozen=True, slots=True)
class Verdict:
    """What a verifier found. Only ``fail`` may ever make an answer the rejected side of a pair."""

    outcome: Outcome
    confidence: float
    explanation: str
    verifier: str
    detail: Mapping[str, Any] = field(default_factory=dict)
    seconds: float = 0.0

    def __post_init__(self) -> None:
        if self.outcome not in ("pass", "fail", "abstain", "error"):
            raise ValueError(f"Verdict.outcome is {self.outcome!r}; expected pass, fail, abstain or error")
        if not 0.0 <= self.confidence <= 1.0:
            raise ValueError(f"Verdict.confidence is {self.confidence!r}; expected a number from 0 to 1")


@dataclass(frozen=True, slots=True)
class Score:
    """A reward. ``value`` None: the reward could not be computed, and ``parts`` may say why under "error"."""

    value: float | None
    parts: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Judged:
    """One candidate with all that was found about it: the row of a pairing's table."""

    candidate: Candidate
    verdict: Verdict
    score: Score


@dataclass(frozen=True, slots=True)
class Pair:
    """A preference: candidate indices of the two sides, within one query."""

    chosen: int
    rejected: int
    margin: float
    reason: str


@dataclass(frozen=True, slots=True)
class ToolResult:
    """What a tool gave back, and from where.

    ``source`` is deterministic, schema (made up), llm, cache, refused (never run) or failed (a fault of ours).
    """

    content: str
    source: str = "deterministic"
    error: str = ""


@dataclass(frozen=True, slots=True)
class Limits:
    """What one execution may use; ``wall_s`` is for each call or test of it, and three times that for all."""

    wall_s: float = 10.0
    cpu_s: float = 10.0
    memory_mb: int = 512
    processes: int = 64
    stdout_bytes: int = 1 << 20
    stderr_bytes: int = 64 << 10
    disk_mb: int = 64


@dataclass(frozen=True, slots=True)
class Program:
    """Something to execute in a sandbox: untrusted source and its inputs, never the expected results.

    At most one of these says what is done with it; without any, it runs once with ``stdin``:
    ``stdins`` runs it once for each input (``Execution.runs``); ``calls`` makes each call ``{"name", "args",
    "kwargs"}`` on the loaded program in one execution (for SQL: ``args`` is ``[setup]``, a fresh database a call);
    ``tests`` are sources that a driver process of its own executes after ``setup``, calling the program by proxy.
    """

    language: Language
    source: str
    stdin: str = ""
    files: Mapping[str, str] = field(default_factory=dict)
    calls: tuple[Mapping[str, Any], ...] = ()
    stdins: tuple[str, ...] = ()
    tests: tuple[str, ...] = ()
    setup: str = ""  # what the driver executes before the tests
    entry_point: str = ""  # the function that a test's ``check(candidate)`` is given
    limits: Limits = field(default_factory=Limits)


ExecutionStatus = Literal["ok", "error", "timeout", "memory", "output", "infra"]


@dataclass(frozen=True, slots=True)
class Execution:
    """What was observed of one run. ``infra`` means that the sandbox failed, never the program.

    ``returns`` has one entry a call, ``{"value": plain data}`` or ``{"error": text}``, or one a test, ``{"passed":
    bool, "error": text}``; fewer when the program ended before. ``runs`` has one execution for each of ``stdins``.
    """

    status: ExecutionStatus
    exit_code: int | None
    stdout: str
    stderr: str
    seconds: float
    returns: tuple[Any, ...] = ()
    runs: tuple[Execution, ...] = ()
    detail: Mapping[str, Any] = field(default_factory=dict)


def content_text(content: Any) -> str:
    """The plain text of a message's ``content``: a string, a list of content parts, or None."""
    if content is None:
        return ""
    if isinstance(content, str):
        return content
    if isinstance(content, Sequence):
        return "".join(str(part.get("text") or "") for part in content if isinstance(part, Mapping))
    return str(content)


def with_system_text(messages: Sequence[Message], before: str, after: str = "") -> tuple[Message, ...]:
    """``messages`` with a system prompt that begins with ``before`` and ends with ``after``, its own text between."""
    own, rest = "", tuple(messages)
    if rest and rest[0].get("role") in ("system", "developer"):
        own, rest = content_text(rest[0].get("content")), rest[1:]
    text = paragraphs((before, own, after))
    return ({"role": "system", "content": text}, *rest) if text else rest


def paragraphs(parts: Sequence[str]) -> str:
    return "\n\n".join(part for part in parts if part)
