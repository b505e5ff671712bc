"""Code that runs inside a box: the supervisor, the confinement of its children, and the messages to the host.

These modules use the standard library only. The host sends the source of the modules into each new box
(``sandbox.payload``). Therefore an image contains runtimes but no code of bestofn.

Terms of these modules:

- *program*: the untrusted program under test, in a process of its own.
- *driver*: the process that runs the tests and writes the verdicts. It never executes code of the program.
- *strict run*: the tests run in the driver, so the program cannot forge a verdict.
- *form*: the JSON form of a value in a message between two processes (``plain``).
- *handle*: the number with which the driver refers to an object of the program.
- *proxy*: an object that represents an object of the other process. An operation on a proxy is sent as a message.
- *mirrored class*: a class in the driver that represents a class of the program (``mirrors``).
- *lent object*: an object of the tests that the program may use (``lent``), through a proxy (``borrowed``).
"""
