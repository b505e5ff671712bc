"""Runs ``bestofn inspect`` for the documented command ``python inspect_experiment.py FILE …``."""

import sys

if __name__ == "__main__":
    del sys.path[0]  # this folder, whose bestofn.py would hide the package
    from bestofn.scripts.main import main

    main(["inspect", *sys.argv[1:]])
