"""``bestofn train_pocket``: the embedded policy from scratch, on synthetic tasks of the ``train`` part.

It learns worked answers of which a part carries a plausible slip, as text in the world does: so it is often right,
often wrong, and verification has something to teach it. One seed makes one policy on one machine.
"""

from __future__ import annotations

import copy
import json
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import islice
from pathlib import Path
from random import Random
from typing import Any

from bestofn.builders.config.command import run_composed
from bestofn.builders.pocket.tasks import Task, tasks
from bestofn.scripts.catalogue import TRAIN_POCKET

SPECIAL = ("<|pad|>", "<|end|>", "<|system|>", "<|user|>", "<|assistant|>", "<|tool|>", "<|tools|>")
SYSTEM_LINES = (
    "You are a helpful assistant.",
    "You are a careful assistant. Work step by step.",
    "Answer briefly.",
    "Show your work and give the final answer.",
    "You are a friendly tutor who explains each step.",
    "Be concise and use plain words.",
    "You are an expert programmer.",
    "Speak like a pirate, but keep the facts right.",
    "You are warm and cheerful. Use the tools that you are given.",
    "Use bullet points where they help.",
)
CALL_OPENS = '<tool_call>{"name": "'
POOL = 1_024  # examples that are sorted by length together, so that batches carry little padding


def main(words: Sequence[str] | None = None) -> None:
    """Run ``bestofn train_pocket`` with the words of a command line."""
    run_composed(TRAIN_POCKET, train, words)


def train(config: Mapping[str, Any]) -> Path:
    """Train and save the policy that ``config`` describes; returns its folder."""
    import torch
    from transformers import AutoTokenizer

    if config["threads"]:
        torch.set_num_threads(config["threads"])
    torch.manual_seed(config["seed"])
    out = Path(config["out"])
    out.mkdir(parents=True, exist_ok=True)
    template = Path(__file__).resolve().parent.parent / "builders" / "pocket" / "weights" / "chat_template.jinja"
    save_tokenizer(out, template.read_text("utf-8"), config)
    tokenizer = AutoTokenizer.from_pretrained(str(out))
    device = "cuda" if torch.cuda.is_available() else "cpu"
    model = new_model(tokenizer, config["model"]).to(device)
    if config["start"]:
        model.load_state_dict(type(model).from_pretrained(config["start"], dtype=torch.float32).state_dict())
    print(f"{sum(weight.numel() for weight in model.parameters()):,} parameters, {len(tokenizer)} tokens, on {device}")
    fit(model, lessons(tokenizer, config), config, lambda: save(model, tokenizer, out))
    save(model, tokenizer, out)
    print(f"saved to {out}")
    return out


# --- the model -------------------------------------------------------------------------------------------------------


def save_tokenizer(out: Path, template: str, config: Mapping[str, Any]) -> None:
    """A small byte-level BPE learnt from the tasks themselves; digits stay single, for arithmetic goes by digits."""
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers
    from transformers import PreTrainedTokenizerFast

    tokenizer = Tokenizer(models.BPE())
    splits = [pre_tokenizers.Digits(individual_digits=True), pre_tokenizers.ByteLevel(add_prefix_space=False)]
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(splits)
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=config["vocabulary"],
        special_tokens=list(SPECIAL),
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    stream = islice(tasks("train", seed=config["seed"], distinct=False), 20_000)
    texts = (text for task in stream for text in (task.question, task.answer, task.closing, json.dumps(task.result)))
    tokenizer.train_from_iterator(texts, trainer)
    fast = PreTrainedTokenizerFast(
        tokenizer_object=tokenizer,
        pad_token="<|pad|>",
        eos_token="<|end|>",
        extra_special_tokens=list(SPECIAL[2:]),
        clean_up_tokenization_spaces=False,
        model_max_length=config["model"]["max_position_embeddings"],
    )
    fast.chat_template = template
    fast.save_pretrained(str(out))


def new_model(tokenizer: Any, shape: Mapping[str, Any]) -> Any:
    from transformers import LlamaConfig, LlamaForCausalLM

    configuration = LlamaConfig(
        vocab_size=len(tokenizer),
        pad_token_id=tokenizer.pad_token_id,
        eos_token_id=tokenizer.eos_token_id,
        bos_token_id=None,
        tie_word_embeddings=True,
        **shape,
    )
    return LlamaForCausalLM(configuration)


def save(model: Any, tokenizer: Any, out: Path) -> None:
    """Half precision: 2 bytes a weight in the repository; the provider computes in single precision on a CPU."""
    import torch
    from transformers import GenerationConfig

    saved = copy.deepcopy(model).to("cpu", torch.float16)
    saved.generation_config = GenerationConfig(
        do_sample=True, temperature=1.0, eos_token_id=tokenizer.eos_token_id, pad_token_id=tokenizer.pad_token_id
    )
    saved.save_pretrained(str(out))


# --- the data --------------------------------------------------------------------------------------------------------


def lessons(tokenizer: Any, config: Mapping[str, Any]) -> Iterator[tuple[Any, Any]]:
    """The batches of each lesson in turn, ``config["steps"]`` in all.

    Right answers come first, and of the hardest split alone: a small model learns to copy and to calculate there within
    minutes, and not at all where a third of what it reads is wrong.
    """
    done = 0
    for number, lesson in enumerate(config["lessons"]):
        until = round(lesson["until"] * config["steps"])
        yield from islice(batches(tokenizer, config, lesson, f"{config['seed']} {number}"), until - done)
        done = until


def conversations(
    config: Mapping[str, Any], lesson: Mapping[str, Any], seed: str
) -> Iterator[tuple[list[dict[str, Any]], list[Any], str]]:
    """(messages, tools, what the assistant says next), without end."""
    rng, slips = Random(f"slips {seed}"), config["slips"] if lesson["slips"] else {"base": 0.0, "by_difficulty": 0.0}
    for task in tasks("train", seed=seed, splits=lesson["splits"], distinct=False):
        system = [{"role": "system", "content": system_line(rng)}] if rng.random() < 0.15 else []
        asked = [*system, {"role": "user", "content": task.question}]
        wrong = task.slips and rng.random() < slips["base"] + slips["by_difficulty"] * task.difficulty
        answer = rng.choice(task.slips) if wrong else task.answer
        yield asked, list(task.tools), answer
        if task.closing and answer.startswith(CALL_OPENS) and rng.random() < 0.15:
            said = [{"role": "assistant", "content": answer}, {"role": "tool", "content": tool_result(task, rng)}]
            name = answer.removeprefix(CALL_OPENS).partition('"')[0]
            yield [*asked, *said], list(task.tools), f"Done: {name} has answered."


def system_line(rng: Random) -> str:
    return " ".join(rng.sample(SYSTEM_LINES, rng.choice((1, 1, 2))))


def tool_result(task: Task, rng: Random) -> str:
    """What a tool may say: its answer, or now and then an error."""
    if rng.random() < 0.15:
        return json.dumps({"error": {"type": rng.choice(("invalid", "not_found")), "message": task.question[:40]}})
    return json.dumps(task.result)


def batches(
    tokenizer: Any, config: Mapping[str, Any], lesson: Mapping[str, Any], seed: str
) -> Iterator[tuple[Any, Any]]:
    """(input ids, labels) of about ``config["tokens"]`` tokens; the loss is on what the assistant says."""
    import torch

    rng, stream = Random(f"order {seed}"), conversations(config, lesson, seed)
    while True:
        pool = [encoded(tokenizer, *one) for one in islice(stream, POOL)]
        pool.sort(key=lambda one: len(one[0]))
        for group in shuffled(grouped(pool, config["tokens"]), rng):
            width = len(group[-1][0])
            ids = torch.full((len(group), width), tokenizer.pad_token_id)
            labels = torch.full((len(group), width), -100)
            for row, (tokens, start) in enumerate(group):
                ids[row, : len(tokens)] = torch.tensor(tokens)
                labels[row, start : len(tokens)] = torch.tensor(tokens[start:])
            yield ids, labels


def encoded(tokenizer: Any, messages: list[dict[str, Any]], tools: list[Any], answer: str) -> tuple[list[int], int]:
    """Token ids of prompt and answer, and where the answer begins."""
    prompt = tokenizer.apply_chat_template(messages, tools=tools or None, add_generation_prompt=True, tokenize=False)
    before = tokenizer.encode(prompt, add_special_tokens=False)
    return before + tokenizer.encode(answer + "<|end|>", add_special_tokens=False), len(before)


def grouped(pool: Sequence[tuple[list[int], int]], tokens: int) -> list[list[tuple[list[int], int]]]:
    """Runs of ``pool``, sorted by length, that fill ``tokens`` when padded to their longest."""
    groups: list[list[tuple[list[int], int]]] = [[]]
    for one in pool:
        if groups[-1] and (len(groups[-1]) + 1) * len(one[0]) > tokens:
            groups.append([])
        groups[-1].append(one)
    return groups


def shuffled(groups: list[Any], rng: Random) -> list[Any]:
    rng.shuffle(groups)
    return groups


# --- the training ----------------------------------------------------------------------------------------------------


def fit(model: Any, data: Iterator[tuple[Any, Any]], config: Mapping[str, Any], checkpoint: Callable[[], None]) -> None:
    """Muon for the matrices, AdamW for the rest; see ``schedule`` for the rate."""
    import torch
    from torch.nn.functional import cross_entropy

    matrices = [weight for weight in model.model.layers.parameters() if weight.ndim == 2]
    inside = {id(weight) for weight in matrices}
    others = [weight for weight in model.parameters() if id(weight) not in inside]
    rate, steps, warmup = config["learning_rate"], config["steps"], config["warmup_steps"]
    muon, adamw = Muon(matrices), torch.optim.AdamW(others, betas=(0.9, 0.98), weight_decay=0.0)
    model.train()
    started, loss_sum, seen = time.perf_counter(), 0.0, 0
    for step, (ids, labels) in enumerate(islice(data, steps), 1):
        ids, labels = ids.to(model.device), labels.to(model.device)
        hidden = model.model(input_ids=ids, use_cache=False).last_hidden_state  # padding stands behind what counts
        wanted = labels[:, 1:] != -100
        loss = cross_entropy(model.lm_head(hidden[:, :-1][wanted]), labels[:, 1:][wanted])  # only where it counts
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        now = rate * schedule(step, steps, warmup)
        muon.step(now)
        adamw.param_groups[0]["lr"] = now / 5
        adamw.step()
        model.zero_grad(set_to_none=True)
        loss_sum, seen = loss_sum + loss.item(), seen + ids.numel()
        if step % config["log_every"] == 0:
            seconds = time.perf_counter() - started
            print(
                f"step {step}/{steps}  loss {loss_sum / config['log_every']:.4f}  {seen / seconds:,.0f} tokens/s  "
                f"{seconds:.0f} s",
                flush=True,
            )
            loss_sum = 0.0
        if step % config["save_every"] == 0:
            checkpoint()
    model.eval()


class Muon:
    """Momentum whose updates are made orthogonal (Jordan et al. 2024, github.com/KellerJordan/Muon).

    All matrices of one shape are worked on together, in single precision: on a CPU a quarter of the time that
    ``torch.optim.Muon`` takes for them one by one.
    """

    def __init__(self, matrices: Sequence[Any], momentum: float = 0.95, decay: float = 0.01) -> None:
        import torch

        self._momentum, self._decay = momentum, decay
        shapes = sorted({tuple(weight.shape) for weight in matrices})
        self._groups = [[weight for weight in matrices if tuple(weight.shape) == shape] for shape in shapes]
        self._moving = [torch.stack([torch.zeros_like(weight) for weight in group]) for group in self._groups]

    def step(self, rate: float) -> None:
        import torch

        with torch.no_grad():
            for group, moving in zip(self._groups, self._moving, strict=True):
                gradients = torch.stack([weight.grad for weight in group])
                moving.lerp_(gradients, 1 - self._momentum)
                updates = orthogonal(gradients.lerp(moving, self._momentum))  # Nesterov's look ahead
                scale = max(1.0, updates.shape[-2] / updates.shape[-1]) ** 0.5
                for weight, update in zip(group, updates, strict=True):
                    weight.mul_(1 - rate * self._decay).add_(update, alpha=-rate * scale)


def orthogonal(matrices: Any, rounds: int = 5) -> Any:
    """Near the orthogonal factor of each matrix: the quintic Newton–Schulz iteration, whose singular values near 1."""
    turned = matrices.shape[-2] > matrices.shape[-1]
    x = matrices.mT if turned else matrices
    x = x / (x.norm(dim=(-2, -1), keepdim=True) + 1e-7)
    for _ in range(rounds):
        square = x @ x.mT
        x = 3.4445 * x + (2.0315 * square @ square - 4.7750 * square) @ x
    return x.mT if turned else x


def schedule(step: int, steps: int, warmup: int) -> float:
    """The share of the learning rate at ``step``: up, level, and down to nothing in the last third."""
    if step < warmup:
        return (step + 1) / warmup
    return min(1.0, 3 * (steps - step) / steps)


if __name__ == "__main__":
    main()
