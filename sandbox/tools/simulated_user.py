"""Uses a language model to play the user of a dialogue. The stage ``generate`` uses this module.

A query describes its user in ``metadata["user_instruction"]``. The prompt of the query ends with the user's first
message. The model under test does not see the instruction, and the model that plays the user sees no tool call.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from pathlib import Path

from bestofn.builders.errors import ProviderError, ServiceError
from bestofn.builders.formats.inline_thinking import without_thinking
from bestofn.builders.protocols import PlannedCalls, Sampler
from bestofn.builders.records import Message, Query, Request, Sampling, content_text

PROMPT = Path(__file__).parent / "simulated_user.v1.md"
INSTRUCTION = "user_instruction"
"""The key of ``Query.metadata`` that contains the instruction for the simulated user."""
STOP = "###STOP###"
GREETING = "Hello. How can I help you?"
"""The first message of each dialogue with the user's model. Some services require that role "user" speaks first."""


class SimulatedUser:
    """Plays the user with the model ``sampler``; if ``sampler`` is None, with the model of the run.

    A reply depends only on the instruction and the texts of the dialogue. Candidates with the same texts therefore get
    the same reply, and the journal contains it once.
    """

    def __init__(
        self, *, sampler: Sampler | None = None, sampling: Sampling = Sampling(temperature=0.0, max_tokens=512)
    ) -> None:
        self.sampler = sampler
        self.sampling = sampling

    def of_query(self, query: Query, sampler: Sampler) -> Callable[[Sequence[Message]], Awaitable[str | None]] | None:
        """Return the function that replies as the user of ``query``; None if the query describes no user."""
        instruction = query.metadata.get(INSTRUCTION)
        if not isinstance(instruction, str) or not instruction.strip():
            return None
        return partial(self._reply, self.sampler or sampler, instruction)

    def plan(self, sampler: Sampler, dialogues: int, most: int) -> PlannedCalls:
        """Return the planned calls that play the user in ``dialogues`` dialogues, to estimate the cost.

        ``most`` is the largest number of calls in all dialogues together.
        """
        return PlannedCalls(self.sampler or sampler, dialogues, most, self.sampling.max_tokens)

    async def _reply(self, sampler: Sampler, instruction: str, dialogue: Sequence[Message]) -> str | None:
        """Return the next message of the user; None if the user ends the dialogue.

        Raises ``ProviderError`` if the model cannot be reached or returns no text.
        """
        system = f"{PROMPT.read_text('utf-8').strip()}\n\nYour instruction:\n{instruction.strip()}"
        messages = ({"role": "system", "content": system}, *seen_by_user(dialogue))
        (drawn,) = await sampler.draw(Request(messages, sampling=self.sampling))
        if isinstance(drawn, ProviderError):
            raise drawn
        text = without_thinking(drawn.text)[1].strip()
        if not text:
            raise ServiceError(f"the simulated user ({sampler.model}) returned no text")
        return None if STOP in text else text


def seen_by_user(dialogue: Sequence[Message]) -> list[Message]:
    """Return the messages of a dialogue as the user's model sees them: the roles user and assistant are exchanged.

    Tool calls and empty messages are left out.
    """
    other = {"user": "assistant", "assistant": "user"}
    seen: list[Message] = [{"role": "user", "content": GREETING}]
    for message in dialogue:
        role, text = other.get(str(message.get("role"))), content_text(message.get("content"))
        if role is None or not text.strip():
            continue
        if seen[-1]["role"] == role:  # services require that the roles alternate
            seen[-1] = {"role": role, "content": f"{seen[-1]['content']}\n\n{text}"}
        else:
            seen.append({"role": role, "content": text})
    return seen
