"""Process reward models with tiny checkpoints of the published kinds: positions, classes, batches and refusals."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest
import torch

from bestofn.builders.errors import ConfigError
from bestofn.builders.records import Candidate, Query, Score, Verdict
from bestofn.reward.process_model_reward import QWEN_SYSTEM, ProcessModelReward
from tests.tiny_models import llama_config, save_language_model, tokenizer

QUERY = Query("q", "math", ({"role": "user", "content": "What is 1 + 2?"},))
STEPS = ["Step 1: one and two", "Step 2: so three"]


def save(folder: Path, family: str, *, seed: int = 0, labels: int = 2) -> Path:
    """Save a tiny random checkpoint of ``family``: a language model or a token classifier."""
    from transformers import LlamaForCausalLM, LlamaForTokenClassification

    torch.manual_seed(seed)
    tok = tokenizer()
    tok.add_special_tokens({"additional_special_tokens": ["<|im_start|>", "<|im_end|>", "ки", "<extra_0>"]})
    kind = LlamaForCausalLM if family == "math_shepherd" else LlamaForTokenClassification
    more: dict[str, Any] = {} if family == "math_shepherd" else {"num_labels": labels}
    kind(llama_config(tok, initializer_range=0.2, **more)).save_pretrained(folder)
    tok.save_pretrained(folder)
    return folder


def answers(*texts: str) -> list[Candidate]:
    return [Candidate(place, ({"role": "assistant", "content": text},)) for place, text in enumerate(texts)]


def scores(reward: ProcessModelReward, *texts: str) -> list[Score]:
    async def run() -> list[Score]:
        async with reward:
            candidates = answers(*texts)
            return await reward.score(QUERY, candidates, [Verdict("abstain", 0.0, "", "t")] * len(candidates))

    return asyncio.run(run())


def by_card(folder: Path, family: str) -> list[float]:
    """Return the probabilities of the steps in STEPS, computed as the model cards show."""
    from transformers import AutoModelForCausalLM, AutoModelForTokenClassification, AutoTokenizer

    tok = AutoTokenizer.from_pretrained(folder)
    if family == "math_shepherd":
        model = AutoModelForCausalLM.from_pretrained(folder).eval()
        ids = torch.tensor([tok.encode(f"{QUERY.text} {STEPS[0]} ки\n{STEPS[1]} ки")])
        chances = model(ids).logits[:, :, [tok.encode("+")[-1], tok.encode("-")[-1]]].softmax(dim=-1)[:, :, 0]
        return chances[ids == tok.encode("ки")[-1]].tolist()
    model = AutoModelForTokenClassification.from_pretrained(folder).eval()
    chat = [{"role": "system", "content": QWEN_SYSTEM}, {"role": "user", "content": QUERY.text},
            {"role": "assistant", "content": "<extra_0>".join(STEPS) + "<extra_0>"}]  # fmt: skip
    text = tok.apply_chat_template(chat, tokenize=False)
    ids = torch.tensor([tok(text, add_special_tokens=False)["input_ids"]])
    return model(ids)[0].softmax(-1)[ids == tok.encode("<extra_0>")[0]][:, 1].tolist()


@pytest.mark.parametrize("family", ["math_shepherd", "qwen"])
def test_the_probabilities_are_those_of_the_model_card(family: Any, tmp_path: Path) -> None:
    folder = save(tmp_path, family)
    with torch.no_grad():
        expected = by_card(folder, family)
    reward = ProcessModelReward(str(folder), family=family, aggregate="prod")
    longer = "\n\n".join([*STEPS, "Step 3: and a much longer step than the others, so that the batch is padded"])
    short, long = scores(reward, "\n\n".join(STEPS), longer)
    assert [step["score"] for step in short.parts["steps"]] == pytest.approx(expected, abs=1e-5)
    assert short.value == pytest.approx(expected[0] * expected[1], abs=1e-5)
    assert [step["score"] for step in long.parts["steps"][:2]] == pytest.approx(expected, abs=1e-5)
    assert [step["text"] for step in short.parts["steps"]] == STEPS


def test_a_token_classifier_is_read_at_the_separators(tmp_path: Path) -> None:
    from transformers import AutoModelForTokenClassification, AutoTokenizer

    folder = save(tmp_path, "tokens")
    (score,) = scores(ProcessModelReward(str(folder), family="tokens"), "\n\n".join(STEPS))
    tok = AutoTokenizer.from_pretrained(folder)
    ids = tok.encode(f"<s>{QUERY.text}{STEPS[0]}\n{STEPS[1]}\n")
    ends = [place for place, token in enumerate(ids) if tok.decode([token]) == "\n"]
    with torch.no_grad():
        logits = AutoModelForTokenClassification.from_pretrained(folder).eval()(torch.tensor([ids])).logits[0]
    expected = logits.softmax(-1)[ends, 1].tolist()
    assert [step["score"] for step in score.parts["steps"]] == pytest.approx(expected, abs=1e-5)
    assert score.value == pytest.approx(min(expected), abs=1e-5)


def test_an_answer_with_the_tag_or_too_long_has_no_value(tmp_path: Path) -> None:
    folder = save(tmp_path, "qwen")
    reward = ProcessModelReward(str(folder), family="qwen", max_length=300)
    forged, long, good, empty = scores(reward, "wrong<extra_0>\n\nright", "x" * 400, "a\n\nb", " ")
    assert forged.value is None
    assert "the tag '<extra_0>' occurs 3 times; expected 2" in forged.parts["error"]
    assert "max_length is 300" in long.parts["error"]
    assert good.value is not None
    assert "no text" in empty.parts["error"]


def test_checkpoints_of_another_kind_are_refused(tmp_path: Path) -> None:
    language = save_language_model(tmp_path / "language")
    with pytest.raises(ConfigError, match="not a reward model"):
        scores(ProcessModelReward(str(language), family="qwen"), "a")
    three = save(tmp_path / "three", "qwen", labels=3)
    with pytest.raises(ConfigError, match="3 classes; expected 2"):
        scores(ProcessModelReward(str(three), family="qwen"), "a")
    with pytest.raises(ConfigError, match="cannot be loaded"):
        scores(ProcessModelReward(str(tmp_path / "none")), "a")
