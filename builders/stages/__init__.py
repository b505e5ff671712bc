"""The stages of a build: generate, verify, reward, pairs. Each adds columns to the rows of a shard."""
