"""Computes the expected final state of the mock world (``Reference.state``) from the reference calls of a query.

Call ``final_state`` when you prepare a dataset.
"""

from __future__ import annotations

from collections.abc import Sequence

from bestofn.builders.errors import SourceError
from bestofn.builders.formats.tool_calls import call_arguments, call_name
from bestofn.builders.records import JsonObject
from bestofn.sandbox.tools.mock_tools import MockTools


async def final_state(calls: Sequence[JsonObject], seed: int = 0) -> JsonObject:
    """Make ``calls`` in a new world with this ``seed``, and return the changes of the world.

    Each call may have any supported API format. Raises ``SourceError`` if a call fails, because a failed call cannot be
    a reference.
    """
    tools = MockTools(seed=seed)
    for made in calls:
        result = await tools.call(call_name(made), call_arguments(made))
        if result.error:
            raise SourceError(
                f"the reference call {call_name(made)}({call_arguments(made)}) fails: {result.error}. Correct the "
                "call, or leave the state out of the reference."
            )
    return tools.changes()
