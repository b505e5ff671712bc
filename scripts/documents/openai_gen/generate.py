"""Runs ``bestofn openai generate`` for the documented command ``python -m openai_gen.generate``."""

import sys

if __name__ == "__main__":
    from bestofn.scripts.main import main

    main(["openai", "generate", *sys.argv[1:]])
