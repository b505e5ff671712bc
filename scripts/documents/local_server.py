"""Runs ``bestofn serve`` for the documented command ``python local_server.py --model PATH --port 8000``."""

import sys

if __name__ == "__main__":
    del sys.path[0]  # this folder, whose bestofn.py would hide the package
    from bestofn.scripts.main import main

    main(["serve", *sys.argv[1:]])
