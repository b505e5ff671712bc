"""What runs inside the box: the supervisor, the confinement of its children, and the wire to the host.

Standard library only. The source of these modules is sent into the box when it starts (``sandbox.payload``), so an
image holds runtimes and nothing of ours.
"""
