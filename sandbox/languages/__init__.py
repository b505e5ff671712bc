"""The languages of the sandbox, each a small description of how its programs run inside the box.

A language is a module with ``LIMITS_ADDRESS_SPACE``, ``become_program(caps)`` and ``become_driver(count,
program_count, caps)``. Both are called in a confined child and never return: the first waits for its job
(``jobs.await_job``) and runs it; the second reads ``count`` bytes of tests, lets the program go, and drives it. To add
one, write the module and name it here and in ``inside.wire.LANGUAGES``.
"""

from __future__ import annotations

from bestofn.sandbox.languages import bash, javascript, python, sql

BY_NAME = {"python": python, "javascript": javascript, "bash": bash, "sql": sql}
