"""Code that runs inside a box: the supervisor, the confinement of its children, and the messages to the host.

These modules use the standard library only. The host sends the source of the modules into each new box
(``sandbox.payload``). Therefore an image contains runtimes but no code of bestofn.

Terms of these modules:

- *program*: the untrusted program under test, in a process of its own.
- *form*: the JSON form of a value in a message between two processes (``plain``).
"""
