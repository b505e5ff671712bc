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

    The supervisor calls ``become_program`` and ``become_driver`` in confined children. ``become_program(caps)`` waits
    for its job (``jobs.await_job``) and runs it. ``become_driver(count, program_count, caps)`` reads ``count`` bytes of
    tests, sends the start signal to the program (``jobs.start_program``) and runs the tests. Neither function returns.
    ``become_driver`` is None if no tests of this language run in a separate process. ``prepared`` is a file that later
    children get at the descriptor ``descriptors.PREPARED``. ``limits_address_space`` states whether the memory limit
    applies to the address space.
    """

    become_program: Callable[[Caps], None]
    become_driver: Callable[[int, int, Caps], None] | None = None
    limits_address_space: bool = True
    prepared: Prepared | None = None
