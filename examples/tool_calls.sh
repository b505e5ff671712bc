#!/usr/bin/env bash
# A tool-calling set: the model calls simulated tools, each call is checked against schema and effect, and the pairs keep
# the column `tools` that TRL reads. Your own tools and calls: `bestofn init FILE` maps the columns.
set -euo pipefail

bestofn build dataset=starter 'dataset.splits=[tool_calling]' dataset.max_queries=8 ${SETTINGS:-provider=pocket} n=8 \
  tools=mock pairs=verified_vs_refuted out=tools-run
bestofn inspect tools-run
python3 - <<'PYTHON'
from datasets import load_dataset

pairs = load_dataset("parquet", data_dir="tools-run/dpo", split="train")
print(pairs.column_names)
print("rejected:", pairs[0]["rejected"][0].get("tool_calls"))
PYTHON
