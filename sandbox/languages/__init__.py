"""The languages of the sandbox. Each has a module that runs its programs inside a box.

A language is a module with ``LIMITS_ADDRESS_SPACE``, ``become_program(caps)`` and ``become_driver(count, program_count,
caps)``. The supervisor calls both functions in a confined child; they never return. ``become_program`` waits for its
job (``jobs.await_job``) and runs it. ``become_driver`` reads ``count`` bytes of tests, signals the program to start
(``jobs.start_program``) and runs the tests. To add a language, write its module and add its name here and in
``inside.wire.LANGUAGES``.
"""

from __future__ import annotations

from bestofn.sandbox.languages import bash, javascript, python, sql

BY_NAME = {"python": python, "javascript": javascript, "bash": bash, "sql": sql}
