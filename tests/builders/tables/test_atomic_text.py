"""Text files are replaced atomically; devices are written directly."""

from __future__ import annotations

import os
import stat
import threading
from pathlib import Path

from bestofn.builders.tables.atomic_text import write_text


def test_a_pipe_is_written_and_stays_a_pipe(tmp_path: Path) -> None:
    pipe, read = tmp_path / "pipe", list[str]()
    os.mkfifo(pipe)
    reader = threading.Thread(target=lambda: read.append(pipe.read_text("utf-8")), daemon=True)
    reader.start()
    write_text(pipe, "text")
    assert stat.S_ISFIFO(pipe.stat().st_mode)
    reader.join()
    assert read == ["text"]


def test_an_open_file_is_written_in_place(tmp_path: Path) -> None:
    with (tmp_path / "file").open("w+", encoding="utf-8") as file:
        write_text(Path(f"/proc/self/fd/{file.fileno()}"), "text")
        assert file.read() == "text"
