"""The file of a journal in a folder that cannot be written."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from bestofn.builders.sampling.journal_file import connect


def test_a_journal_in_a_read_only_folder_is_read_without_further_files(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "journal.sqlite"
    connect(path, readonly=False).close()
    monkeypatch.setattr(os, "access", lambda *given: False)
    connection = connect(path, readonly=True)
    assert connection.execute("SELECT count(*) FROM calls").fetchone() == (0,)
    assert [file.name for file in tmp_path.iterdir()] == ["journal.sqlite"]
    connection.close()


def test_a_journal_with_unread_changes_is_not_taken_for_complete(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "journal.sqlite"
    writer = connect(path, readonly=False)
    writer.execute("CREATE TABLE added (x)")
    monkeypatch.setattr(os, "access", lambda *given: False)
    reader = connect(path, readonly=True)
    assert reader.execute("SELECT count(*) FROM added").fetchone() == (0,)
    reader.close()
    writer.close()
