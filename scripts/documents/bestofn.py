"""Runs ``bestofn …`` for the documented command ``python bestofn.py …``."""

import sys

if __name__ == "__main__":
    del sys.path[0]  # this folder, whose bestofn.py would hide the package
    from bestofn.scripts.main import main

    main(sys.argv[1:])
