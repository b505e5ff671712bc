"""The error for a folder without a model lists the files of the folder or names a checkpoint in it."""

from pathlib import Path

import pytest

from bestofn.builders.errors import ConfigError
from bestofn.builders.pocket.model_files import check_model_folder


def test_a_folder_without_a_model_is_named_with_its_files(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"has no config\.json; it is empty\. Give a folder"):
        check_model_folder(tmp_path)
    (tmp_path / "model.safetensors").touch()
    with pytest.raises(ConfigError, match=r"has no config\.json; it has model\.safetensors\. Give"):
        check_model_folder(tmp_path)


def test_a_run_of_training_leads_to_its_checkpoint(tmp_path: Path) -> None:
    for name in ("checkpoint-1", "checkpoint-2"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "config.json").touch()
    with pytest.raises(ConfigError, match=r"Set model=.*/checkpoint-2\."):
        check_model_folder(tmp_path)
    check_model_folder(tmp_path / "checkpoint-1")
    check_model_folder(Path("owner/name-on-the-hub"))
