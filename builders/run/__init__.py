"""One run: its shards, its folder, its manifest, and the regeneration of candidates in a finished run."""
