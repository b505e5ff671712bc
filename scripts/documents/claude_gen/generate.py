"""Runs ``bestofn claude generate`` for the documented command ``python -m claude_gen.generate``."""

import sys

if __name__ == "__main__":
    from bestofn.scripts.main import main

    main(["claude", "generate", *sys.argv[1:]])
