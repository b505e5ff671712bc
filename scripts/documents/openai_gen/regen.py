"""Runs ``bestofn openai regen`` for the documented command ``python -m openai_gen.regen``."""

import sys

if __name__ == "__main__":
    from bestofn.scripts.main import main

    main(["openai", "regen", *sys.argv[1:]])
