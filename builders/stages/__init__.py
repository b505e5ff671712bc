"""The stages of a build: generate, verify, reward, pairs. Each stage adds one column to the rows of a shard."""
