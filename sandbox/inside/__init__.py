"""Code that runs inside a box: the supervisor, the confinement of its children, and the messages to the host.

These modules use the standard library only. The host sends their source into the box when it starts
(``sandbox.payload``), so an image contains runtimes but no code of bestofn.
"""
