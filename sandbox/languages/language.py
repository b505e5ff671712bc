"""The type ``Language``: the functions and settings of a language that the supervisor uses.

Each language module has one.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from bestofn.sandbox.inside.confine import Caps
from bestofn.sandbox.inside.prepared import Prepared


class Language(NamedTuple):
    """How programs and tests of one language run.

    The supervisor calls ``become_program(caps)`` in a confined child. It waits for its job (``jobs.await_job``), runs
    it, and does not return. ``prepared`` is a file that later children get at the descriptor ``descriptors.PREPARED``.
    ``limits_address_space`` states whether the memory limit applies to the address space.
    """

    become_program: Callable[[Caps], None]
    limits_address_space: bool = True
    prepared: Prepared | None = None
