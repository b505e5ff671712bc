"""TRL's trainers leave turns of users and tools out of the loss."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from datasets import load_dataset

from bestofn.builders.config.composition import compose
from bestofn.builders.config.objects import ObjectBuilder
from bestofn.builders.errors import ConfigError
from bestofn.builders.pocket.policy import POCKET_WEIGHTS
from bestofn.builders.training.settings import TrainingSettings
from bestofn.builders.training.trainers import _trainer
from tests.tiny_models import save_language_model

pytestmark = pytest.mark.train

QUICK: dict[str, Any] = {"max_steps": 1, "per_device_train_batch_size": 2, "max_length": None}


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a run of recorded dialogues with a simulated user and tools."""
    out = tmp_path_factory.mktemp("runs") / "dialogues"
    config = compose(["dataset=starter_dialogues", "dataset.size=5", "provider=recorded", "sandbox=none", f"out={out}"])
    ObjectBuilder().build(config["executor"], "executor").run(config, out)
    return out


@pytest.fixture(scope="module")
def chatml(tmp_path_factory: pytest.TempPathFactory) -> str:
    """Return a model whose chat template does not mark the assistant's tokens."""
    return str(save_language_model(tmp_path_factory.mktemp("lm")))


def rows_of(run: Path, view: str) -> Any:
    return load_dataset("parquet", data_dir=str(run / view), split="train")


def trainer_of(method: str, model: str, run: Path, out: Path, **trl: Any) -> Any:
    settings = TrainingSettings(method, (run,), out, model=model, trl={**QUICK, **trl})
    return _trainer(settings, rows_of(run, method), None, ())


def written(messages: list[dict[str, Any]], role: str) -> list[str]:
    return [one["content"] for one in messages if one["role"] == role and one["content"]]


@pytest.mark.parametrize("method", ["dpo", "kto", "sft"])
def test_only_the_tokens_of_the_assistant_count(method: str, run: Path, chatml: str, tmp_path: Path) -> None:
    trainer = trainer_of(method, str(POCKET_WEIGHTS) if method == "sft" else chatml, run, tmp_path)
    rows = rows_of(run, method)
    sides = {"dpo": ("chosen", "rejected")}.get(method, ("completion",))
    examples = [trainer.train_dataset[place] for place in range(len(rows))]
    batch = trainer.data_collator(examples)
    counted = batch["labels"] != -100 if method == "sft" else batch["completion_mask"] == 1
    if method == "kto":
        assert (batch["KL_completion_mask"].sum(1) < batch["KL_attention_mask"].sum(1)).all()
    dialogues = [rows[place][side] for side in sides for place in range(len(rows))]
    assert any(written(one, "user") for one in dialogues)
    assert any(written(one, "tool") for one in dialogues)
    for ids, in_loss, messages in zip(batch["input_ids"], counted, dialogues, strict=True):
        text = trainer.processing_class.decode(ids[in_loss])
        assert all(part in text for part in written(messages, "assistant"))
        assert not any(part in text for role in ("user", "tool") for part in written(messages, role))
        names = [call["function"]["name"] for one in messages for call in one.get("tool_calls") or ()]
        assert all(name in text for name in names)


def test_a_template_without_marks_is_refused_for_dialogues(run: Path, chatml: str, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"turns of tool and user.*trl\.assistant_only_loss=false"):
        trainer_of("sft", chatml, run, tmp_path)
    trainer = trainer_of("sft", chatml, run, tmp_path, assistant_only_loss=False)
    assert not trainer.args.assistant_only_loss


def test_log_probabilities_without_masks_are_refused(run: Path, chatml: str, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"precompute_ref_log_probs=false"):
        trainer_of("dpo", chatml, run, tmp_path, precompute_ref_log_probs=True)


def test_a_template_that_changes_the_beginning_is_reported(
    run: Path, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    model = save_language_model(tmp_path / "lm")
    template = (model / "chat_template.jinja").read_text()
    (model / "chat_template.jinja").write_text("{{ messages | length }}" + template)
    trainer = trainer_of("dpo", str(model), run, tmp_path / "out")
    sides = [row[side] for row in rows_of(run, "dpo") for side in ("chosen", "rejected")]
    count = sum(any(one["role"] != "assistant" for one in side) for side in sides)
    assert f"{count} completions are trained with the turns of users and tools" in caplog.text
    assert type(trainer.data_collator).__name__ != "Masked"
