"""Trains the embedded policy from scratch on the synthetic tasks of the part ``train``. Used by ``scripts``.

The same seed gives the same policy on the same machine. torch, tokenizers and transformers are imported only when they
are needed.
"""

from __future__ import annotations

import copy
import json
import time
from collections.abc import Callable, Iterator
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, cast

from bestofn.builders.pocket.lessons import lessons
from bestofn.builders.pocket.muon import Muon, schedule
from bestofn.builders.pocket.policy import POCKET_WEIGHTS
from bestofn.builders.pocket.tasks import tasks
from bestofn.builders.records import JsonObject

if TYPE_CHECKING:
    from torch import Tensor
    from transformers import LlamaForCausalLM, PreTrainedTokenizerBase, PreTrainedTokenizerFast

SPECIAL_TOKENS = ("<|pad|>", "<|end|>", "<|system|>", "<|user|>", "<|assistant|>", "<|tool|>", "<|tools|>")
TOKENIZER_TASKS = 20_000  # number of tasks for the training of the tokenizer


def train_pocket(config: JsonObject) -> Path:
    """Train a policy with the settings in ``config`` (``conf/train_pocket.yaml``), save it, and return its folder."""
    import torch
    from transformers import AutoTokenizer, LlamaForCausalLM

    if config["threads"]:
        torch.set_num_threads(config["threads"])
    torch.manual_seed(config["seed"])
    out = Path(config["out"])
    out.mkdir(parents=True, exist_ok=True)
    save_tokenizer(out, (POCKET_WEIGHTS / "chat_template.jinja").read_text("utf-8"), config)
    tokenizer = AutoTokenizer.from_pretrained(str(out))
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    model = new_model(tokenizer, config["model"])
    torch.nn.Module.to(model, device)
    if config["start"]:
        start = LlamaForCausalLM.from_pretrained(config["start"], dtype=torch.float32)
        model.load_state_dict(start.state_dict())
    print(f"{sum(weight.numel() for weight in model.parameters()):,} parameters, {len(tokenizer)} tokens, on {device}")
    fit(model, lessons(tokenizer, config), config, lambda: save(model, tokenizer, out))
    save(model, tokenizer, out)
    print(f"saved to {out}")
    return out


# --- tokenizer and model ---------------------------------------------------------------------------------------------


def save_tokenizer(out: Path, template: str, config: JsonObject) -> None:
    """Train a byte-level BPE tokenizer on the texts of tasks, and save it in ``out`` with the chat ``template``.

    Each digit is a separate token, because the policy calculates digit by digit.
    """
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers

    tokenizer = Tokenizer(models.BPE())
    splits = [pre_tokenizers.Digits(individual_digits=True), pre_tokenizers.ByteLevel(add_prefix_space=False)]
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(splits)
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=config["vocabulary"],
        special_tokens=list(SPECIAL_TOKENS),
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    tokenizer.train_from_iterator(task_texts(config["seed"]), trainer)
    fast = wrapped_tokenizer(tokenizer, config["model"]["max_position_embeddings"])
    fast.chat_template = template
    fast.save_pretrained(str(out))


def task_texts(seed: int) -> Iterator[str]:
    """Yield the texts on which the tokenizer is trained. ``seed`` selects the tasks."""
    for task in islice(tasks("train", seed=seed, distinct=False), TOKENIZER_TASKS):
        yield from (task.question, task.answer, task.closing, json.dumps(task.result))


def wrapped_tokenizer(tokenizer: object, max_length: int) -> PreTrainedTokenizerFast:
    """Wrap ``tokenizer``, an object of the tokenizers library, as a tokenizer of transformers."""
    from transformers import PreTrainedTokenizerFast

    return PreTrainedTokenizerFast(
        tokenizer_object=tokenizer,
        pad_token="<|pad|>",
        eos_token="<|end|>",
        extra_special_tokens=list(SPECIAL_TOKENS[2:]),
        clean_up_tokenization_spaces=False,
        model_max_length=max_length,
    )


def new_model(tokenizer: PreTrainedTokenizerBase, shape: JsonObject) -> LlamaForCausalLM:
    """Create a Llama model with random weights. ``shape`` holds arguments of ``LlamaConfig``."""
    from transformers import LlamaConfig, LlamaForCausalLM

    configuration = LlamaConfig(
        vocab_size=len(tokenizer),
        pad_token_id=cast("int", tokenizer.pad_token_id),
        eos_token_id=cast("int", tokenizer.eos_token_id),
        bos_token_id=None,
        tie_word_embeddings=True,
        **shape,
    )
    return LlamaForCausalLM(configuration)


def save(model: LlamaForCausalLM, tokenizer: PreTrainedTokenizerBase, out: Path) -> None:
    """Save the model and its tokenizer in ``out``.

    The weights are in float16; on a CPU, the provider loads them in float32.
    """
    import torch
    from transformers import GenerationConfig

    saved = copy.deepcopy(model).to("cpu", torch.float16)  # pyright: ignore[reportArgumentType]
    end, pad = cast("int", tokenizer.eos_token_id), cast("int", tokenizer.pad_token_id)
    saved.generation_config = GenerationConfig(do_sample=True, temperature=1.0, eos_token_id=end, pad_token_id=pad)
    saved.save_pretrained(str(out))


# --- training --------------------------------------------------------------------------------------------------------


def fit(
    model: LlamaForCausalLM,
    data: Iterator[tuple[Tensor, Tensor]],
    config: JsonObject,
    checkpoint: Callable[[], None],
) -> None:
    """Train the model on ``config["steps"]`` batches of ``data``.

    Muon updates the matrices of the layers; AdamW updates all other weights. ``checkpoint`` is called every
    ``config["save_every"]`` steps to save the model.
    """
    import torch

    matrices = [weight for weight in model.model.layers.parameters() if weight.ndim == 2]
    matrix_ids = {id(weight) for weight in matrices}
    others = [weight for weight in model.parameters() if id(weight) not in matrix_ids]
    rate, steps, warmup = config["learning_rate"], config["steps"], config["warmup_steps"]
    muon, adamw = Muon(matrices), torch.optim.AdamW(others, betas=(0.9, 0.98), weight_decay=0.0)
    progress = Progress(steps, config["log_every"])
    model.train()
    for step, (ids, labels) in enumerate(islice(data, steps), 1):
        loss = answer_loss(model, ids.to(model.device), labels.to(model.device))
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        now = rate * schedule(step, steps, warmup)
        muon.step(now)
        adamw.param_groups[0]["lr"] = now / 5
        adamw.step()
        model.zero_grad(set_to_none=True)
        progress.add(step, loss.item(), ids.numel())
        if step % config["save_every"] == 0:
            checkpoint()
    model.eval()


def answer_loss(model: LlamaForCausalLM, ids: Tensor, labels: Tensor) -> Tensor:
    """Return the mean cross-entropy of the labelled tokens. Logits are computed only for these tokens.

    No attention mask is needed: padding is on the right, so no labelled token attends to it.
    """
    from torch.nn.functional import cross_entropy

    hidden = model.model(input_ids=ids, use_cache=False).last_hidden_state
    labelled = labels[:, 1:] != -100
    return cross_entropy(model.lm_head(hidden[:, :-1][labelled]), labels[:, 1:][labelled])


class Progress:
    """Prints the mean loss and the tokens per second every ``log_every`` steps."""

    def __init__(self, steps: int, log_every: int) -> None:
        self._steps, self._log_every = steps, log_every
        self._started, self._loss_sum, self._tokens = time.perf_counter(), 0.0, 0

    def add(self, step: int, loss: float, tokens: int) -> None:
        """Record the loss and the number of tokens of one step, and print a line every ``log_every`` steps."""
        self._loss_sum, self._tokens = self._loss_sum + loss, self._tokens + tokens
        if step % self._log_every == 0:
            seconds = time.perf_counter() - self._started
            print(
                f"step {step}/{self._steps}  loss {self._loss_sum / self._log_every:.4f}  "
                f"{self._tokens / seconds:,.0f} tokens/s  {seconds:.0f} s",
                flush=True,
            )
            self._loss_sum = 0.0
