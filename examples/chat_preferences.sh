#!/usr/bin/env bash
# Chat preferences without references: a judge grades each answer, and the grades make the pairs.
# SERVER is any OpenAI-compatible service, and MODEL one of its models. JUDGE grades; by default MODEL itself:
#   SERVER=https://api.openai.com/v1 MODEL=gpt-5.4-nano JUDGE=gpt-5.4-mini bash chat_preferences.sh
set -euo pipefail
: "${SERVER:?Set SERVER to the address of an OpenAI-compatible service, and MODEL to one of its models}"

cat >chats.jsonl <<'ROWS'
{"messages": [{"role": "user", "content": "Explain to a child why the sky is blue."}]}
{"messages": [{"role": "user", "content": "Write a polite refusal of an invitation to dinner."}]}
{"messages": [{"role": "user", "content": "Name three ways to cook an egg."}]}
ROWS

bestofn build dataset=messages dataset.path=chats.jsonl \
  provider=openai_chat provider.base_url="$SERVER" provider.model="$MODEL" n=4 \
  reward=judge judge=openai_chat \
  judge.base_url="$SERVER" judge.model="${JUDGE:-$MODEL}" pairs=by_score out=chat-run
bestofn best chat-run
bestofn analyze chat-run
