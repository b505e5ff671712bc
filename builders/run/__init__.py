"""One run: its shards, its folder and its manifest, and the commands that change a finished run."""
