"""What a list of calls leaves behind: how the expected final state of a query is made from its right calls."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from bestofn.builders.errors import SourceError
from bestofn.builders.formats.tool_calls import call_arguments, call_name
from bestofn.sandbox.tools.mock_tools import MockTools


async def final_state(calls: Sequence[Mapping[str, Any]], seed: int = 0) -> Mapping[str, Any]:
    """The changes (``Reference.state``) after ``calls``, in any form, in the world of ``seed``.

    Raises ``SourceError`` when one of them fails: a reference run that does not run is no reference.
    """
    tools = MockTools(seed=seed)
    for made in calls:
        result = await tools.call(call_name(made), call_arguments(made))
        if result.error:
            raise SourceError(f"the reference call {call_name(made)}({call_arguments(made)}) fails: {result.error}")
    return tools.changes()
