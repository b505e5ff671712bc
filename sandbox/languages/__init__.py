"""The languages of the sandbox. Each language has a module that runs programs inside a box.

The module of a language defines ``LIMITS_ADDRESS_SPACE``, ``become_program(caps)`` and ``become_driver(count,
program_count, caps)``. The supervisor calls both functions in confined children, and they never return.
``become_program`` waits for its job (``jobs.await_job``) and runs it. ``become_driver`` reads ``count`` bytes of tests,
sends the start signal to the program (``jobs.start_program``) and runs the tests. ``LIMITS_ADDRESS_SPACE`` states
whether the memory limit applies to the address space. To add a language, write its module, and add it to ``by_name``
and to ``inside.wire.LANGUAGES``.
"""
