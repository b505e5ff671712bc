"""Runs ``bestofn claude regen`` for the documented command ``python -m claude_gen.regen``."""

import sys

if __name__ == "__main__":
    from bestofn.scripts.main import main

    main(["claude", "regen", *sys.argv[1:]])
