"""Tiny models for tests: a byte tokenizer with a chat template, and Llama models with random weights."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Self

TEMPLATE = (
    "{{ bos_token }}{% if tools %}<|im_start|>tools\n{{ tools | tojson }}<|im_end|>\n{% endif %}"
    "{% for message in messages %}<|im_start|>{{ message.role }}\n{{ message.content }}"
    "{% for call in message.tool_calls or [] %}<call>{{ call.function | tojson }}</call>{% endfor %}<|im_end|>\n"
    "{% endfor %}{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)


def tokenizer(*, distinct_pad: bool = True) -> Any:
    """Return a tokenizer whose tokens are the special tokens of ChatML and the single bytes."""
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers
    from transformers import PreTrainedTokenizerFast

    specials = ["<pad>", "<s>", "</s>", "<unk>", "<|im_start|>", "<|im_end|>"]
    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    core = Tokenizer(models.BPE({token: place for place, token in enumerate([*specials, *alphabet])}, []))
    core.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    core.decoder = decoders.ByteLevel()
    made = PreTrainedTokenizerFast(
        tokenizer_object=core,
        bos_token="<s>",
        eos_token="</s>",
        unk_token="<unk>",
        pad_token="<pad>" if distinct_pad else "</s>",
        additional_special_tokens=["<|im_start|>", "<|im_end|>"],
    )
    made.chat_template = TEMPLATE
    return made


def llama_config(tok: Any, **changes: Any) -> Any:
    """Return the configuration of a Llama model with two small layers, updated with ``changes``."""
    from transformers import LlamaConfig

    shape = {
        "vocab_size": len(tok),
        "hidden_size": 32,
        "intermediate_size": 64,
        "num_hidden_layers": 2,
        "num_attention_heads": 4,
        "num_key_value_heads": 2,
        "max_position_embeddings": 4096,
        "bos_token_id": tok.bos_token_id,
        "eos_token_id": tok.eos_token_id,
        "pad_token_id": tok.pad_token_id,
    }
    return LlamaConfig(**(shape | changes))


def save_reward_model(folder: Path, *, seed: int = 0, distinct_pad: bool = True, **changes: Any) -> Path:
    """Save a Llama model that returns one score. Its weights are large, so that scores differ clearly."""
    import torch
    from transformers import LlamaForSequenceClassification

    torch.manual_seed(seed)
    tok = tokenizer(distinct_pad=distinct_pad)
    model = LlamaForSequenceClassification(llama_config(tok, num_labels=1, initializer_range=0.2, **changes))
    model.save_pretrained(folder)
    tok.save_pretrained(folder)
    return folder


def save_language_model(folder: Path, *, seed: int = 0, **changes: Any) -> Path:
    """Save a causal Llama model with random weights, and its tokenizer."""
    import torch
    from transformers import LlamaForCausalLM

    torch.manual_seed(seed)
    tok = tokenizer()
    LlamaForCausalLM(llama_config(tok, **changes)).save_pretrained(folder)
    tok.save_pretrained(folder)
    return folder


class WatchedSteps:
    """Stores in ``sizes`` how many rows each step of ``network`` computes, inside the ``with`` block.

    After the first ``after`` steps, a step with more than ``most`` rows raises ``OutOfMemoryError``.
    """

    def __init__(self, network: Any, most: int = 999, after: int = 0) -> None:
        self.most, self.sizes = most, list[int]()
        self._network, self._after = network, after

    def __enter__(self) -> Self:
        self._hook = self._network.register_forward_pre_hook(self._watch, with_kwargs=True)
        return self

    def __exit__(self, *exc: object) -> None:
        self._hook.remove()

    def _watch(self, network: Any, arguments: Any, options: Any) -> None:
        import torch

        self.sizes.append(len(options["input_ids"]))
        if self.sizes[-1] > self.most and len(self.sizes) > self._after:
            raise torch.OutOfMemoryError("too little memory, as scripted")
