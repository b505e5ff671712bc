"""bestofn: candidates, verdicts, rewards and preference pairs.

Arrow is told, before it is first imported, to use the system's allocator: its own keeps what each shard has freed, more
with every shard. Who names an allocator in ``ARROW_DEFAULT_MEMORY_POOL`` is obeyed.
"""

import os

os.environ.setdefault("ARROW_DEFAULT_MEMORY_POOL", "system")
