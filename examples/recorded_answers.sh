#!/usr/bin/env bash
# Verify and pair answers that were sampled elsewhere: one JSON line per query, with all its answers.
set -euo pipefail

cat >recorded.jsonl <<'ROWS'
{"question": "What is 17 * 3?", "gold": "51", "answers": ["17 * 3 = \\boxed{51}", "It is \\boxed{41}.", "\\boxed{51}"]}
{"question": "Solve x + 4 = 9.", "gold": "5", "answers": ["x = 5", "x = 13", "I cannot help with that."]}
{"question": "What is half of 3?", "gold": "1.5", "answers": ["\\boxed{\\frac{3}{2}}", "\\boxed{2}", "\\boxed{1.5}"]}
ROWS

bestofn build dataset=jsonl dataset.path=recorded.jsonl dataset.columns.reference=gold \
  dataset.columns.candidates=answers provider=recorded out=recorded-run
bestofn inspect recorded-run
