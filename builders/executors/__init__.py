"""Runs the shards of a build: in this process, or on a Ray cluster."""
