#!/usr/bin/env bash
# A persona study: the same queries with and without a persona. How strong is the voice, and does accuracy suffer?
# The embedded model has no voice. For a real study: SETTINGS="provider=openai provider.model=gpt-5.4-mini"
set -euo pipefail
settings=${SETTINGS:-provider=pocket}

for persona in none marvin; do
  # shellcheck disable=SC2086  # several settings
  bestofn build dataset=starter 'dataset.splits=[math]' dataset.max_queries=6 $settings n=4 sandbox=none \
    persona=$persona out=study/$persona
done
bestofn voice study/marvin study/none
bestofn compare study/none study/marvin
