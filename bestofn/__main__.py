"""``python -m bestofn`` is the same command as ``bestofn``."""

from bestofn.scripts.main import main

main()
