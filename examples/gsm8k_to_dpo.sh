#!/usr/bin/env bash
# GSM8K with a vLLM server: sample, verify, make pairs, train with TRL's DPO, and compare the trained model with the first.
# Your server: vllm serve Qwen/Qwen3-8B, then VLLM=http://localhost:8000/v1 MODEL=Qwen/Qwen3-8B bash gsm8k_to_dpo.sh
# Without VLLM, `bestofn serve` serves the embedded model with the same API.
set -euo pipefail

if [ -z "${VLLM:-}" ]; then
  port=$(python3 -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])')
  VLLM="http://127.0.0.1:$port/v1" MODEL=pocket
  bestofn serve model=pocket port="$port" >serve.log 2>&1 &
  server=$!
  trap 'kill $server 2>/dev/null || true' EXIT
  until python3 -c "import urllib.request as web; web.urlopen('$VLLM/models')" 2>/dev/null; do
    kill -0 $server || { cat serve.log >&2; exit 1; }
    sleep 0.3
  done
fi

# Four questions in the form of GSM8K. The whole dataset: dataset=gsm8k instead of dataset=jsonl dataset.path=…
cat >gsm8k.jsonl <<'ROWS'
{"question": "Ada has 24 stamps and buys 13 more. How many stamps does she have?", "answer": "She has 24 + 13 = <<24+13=37>>37 stamps.\n#### 37"}
{"question": "What is 12 + 13?", "answer": "12 + 13 = <<12+13=25>>25\n#### 25"}
{"question": "What is 40 - 17?", "answer": "40 - 17 = <<40-17=23>>23\n#### 23"}
{"question": "What is 6 * 7?", "answer": "6 * 7 = <<6*7=42>>42\n#### 42"}
ROWS

bestofn build dataset=jsonl dataset.path=gsm8k.jsonl provider=vllm provider.base_url="$VLLM" provider.model="$MODEL" \
  n=8 sandbox=none pairs=verified_vs_refuted test_share=0 out=gsm8k-run
bestofn train dpo gsm8k-run model="$MODEL" trl.max_steps=2 out=gsm8k-run/trained
bestofn build dataset=jsonl dataset.path=gsm8k.jsonl provider=transformers provider.model=gsm8k-run/trained \
  n=4 sandbox=none out=trained-run
bestofn inspect gsm8k-run trained-run
