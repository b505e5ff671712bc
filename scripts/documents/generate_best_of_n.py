"""Runs ``bestofn openai generate`` for the documented command ``python generate_best_of_n.py --config FILE``."""

import sys

if __name__ == "__main__":
    del sys.path[0]  # this folder, whose bestofn.py would hide the package
    from bestofn.scripts.main import main

    main(["openai", "generate", *sys.argv[1:]])
