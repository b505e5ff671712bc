"""``python -m bestofn``: the command ``bestofn``."""

from bestofn.scripts.main import main

main()
