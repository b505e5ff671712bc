"""The record of a training: differences are listed, and the digest of rows does not depend on the layout of files."""

from __future__ import annotations

from pathlib import Path

from datasets import Dataset, concatenate_datasets

from bestofn.builders.training.record import changes, damage, determining, newest_complete, rows_digest


def test_each_changed_setting_is_named_by_its_key() -> None:
    before = {"seed": 0, "verifier": {"domains": {"math": {"rounding": "strict"}}}, "lora": None}
    now = {"seed": 0, "verifier": {"domains": {"math": {"rounding": "free"}, "code": {"x": 1}}}, "lora": 4}
    assert changes(before, now) == [
        "verifier.domains.math.rounding strict (now free)",
        "lora None (now 4)",
        "verifier.domains.code.x not set (now 1)",
    ]


def test_settings_of_logs_and_checkpoints_do_not_change_the_model() -> None:
    every = {
        "learning_rate": 1.0,
        "logging_steps": 1,
        "save_steps": 2,
        "report_to": "none",
        "dataloader_drop_last": True,
    }
    assert determining(every) == {"learning_rate": 1.0, "dataloader_drop_last": True}
    assert "save_steps" in determining({**every, "load_best_model_at_end": True})


def test_the_digest_of_rows_is_of_their_content() -> None:
    rows = [{"text": f"row {number}", "n": number} for number in range(2500)]
    whole = Dataset.from_list(rows)
    parts = concatenate_datasets([Dataset.from_list(rows[:7]), Dataset.from_list(rows[7:])])
    assert rows_digest(whole) == rows_digest(parts)
    assert rows_digest(whole) != rows_digest(Dataset.from_list(rows[::-1]))
    assert rows_digest(None) == ""


def test_a_checkpoint_without_its_state_is_damaged(tmp_path: Path) -> None:
    (tmp_path / "checkpoint-3").mkdir()
    assert "cannot be read" in damage(tmp_path / "checkpoint-3")
    assert newest_complete(tmp_path) is None
    assert not (tmp_path / "checkpoint-3").exists()
