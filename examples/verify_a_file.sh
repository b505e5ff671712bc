#!/usr/bin/env bash
# Verify completions that you already have: verdict columns first, then a whole run with pairs and a report.
set -euo pipefail

cat >answers.jsonl <<'ROWS'
{"question": "What is 17 * 3?", "answer": "51", "completion": "17 * 3 = \\boxed{51}"}
{"question": "What is 17 * 3?", "answer": "51", "completion": "It is \\boxed{41}."}
{"question": "What is half of 3?", "answer": "1.5", "completion": "\\boxed{\\frac{3}{2}}"}
{"question": "What is half of 3?", "answer": "1.5", "completion": "I cannot help with that."}
ROWS

bestofn verify answers.jsonl # writes answers-verified.jsonl
head -n 2 answers-verified.jsonl

bestofn init answers.jsonl # looks at the columns and writes answers.yaml
bestofn build --from-yaml answers.yaml sandbox=none
bestofn report runs/answers
