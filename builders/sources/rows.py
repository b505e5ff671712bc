"""Rows of a dataset, wherever it lies: a local file or folder, or the Hugging Face Hub; streamed or not."""

from __future__ import annotations

import contextlib
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, TypeGuard

from bestofn.builders.errors import SourceError
from bestofn.builders.formats.nearest_match import nearest
from bestofn.builders.sources.file_rows import COMPRESSION, csv_rows, json_rows

READERS = {".jsonl": "json", ".json": "json", ".csv": "csv", ".tsv": "csv", ".parquet": "parquet", ".arrow": "arrow"}
SPLITS = ("train", "test", "validation", "valid", "val", "dev", "eval")  # what files are usually named after


def rows(
    path: str, *, format: str | None = None, config: str | None = None, split: str | None = None, streaming: bool = True
) -> Iterator[dict[str, Any]]:
    """The rows of ``path`` in order.

    A path that exists is read as a local file, or as a folder that ``save_to_disk`` wrote; anything else is a Hub id.
    JSON and CSV files give what is written in them, whatever ``streaming`` is: ``builders.sources.file_rows``.
    Of a folder whose files are named after splits (``train.jsonl``, ``gsm8k_test.csv``, ``valid/``) those of ``split``
    are read, all without one; a folder of other files, and a single file, is its only split.
    What names its splits (the Hub, ``save_to_disk``) needs ``split`` where there are several: to hold out the training
    rows for want of a name would keep nothing apart.
    Raises ``SourceError`` that names what was found.
    """
    local = Path(path).expanduser()
    if not local.exists() and _looks_local(path, format):
        raise SourceError(f"dataset.path is {path}: there is no such file{_near(local)}. Set dataset.path=…")
    try:
        chosen = _chosen(local, split) if local.exists() else path
        if not isinstance(chosen, str) and not _is_saved(chosen):
            reader, files = _files(chosen, format)
            if reader == "json":
                yield from json_rows(files)
                return
            if reader == "csv":
                yield from csv_rows(files, "\t" if _suffix(files[0]) == ".tsv" else ",")
                return
        with _without_torch():
            loaded = _load(chosen, format, config, split, streaming)
        yield from loaded
    except SourceError:
        raise
    except Exception as error:  # datasets raises many kinds for a file it cannot read
        raise SourceError(
            f"dataset.path is {path}: it cannot be read as {format or 'a dataset'} "
            f"({type(error).__name__}: {_first_line(error)}). Check the file, or set dataset.format."
        ) from error


@contextlib.contextmanager
def _without_torch() -> Iterator[None]:
    """datasets (5.2) imports torch to make a stream, for workers of torch's own: two seconds and 200 MB for nothing."""
    from datasets import config

    before = config.TORCH_AVAILABLE
    config.TORCH_AVAILABLE = before and "torch" in sys.modules
    try:
        yield
    finally:
        config.TORCH_AVAILABLE = before


def table(path: str, split: str) -> Any:
    """A split of ``path`` whose rows are found by their number, memory-mapped. Raises ``SourceError``.

    A local folder may hold a file or a folder for each split (``test.jsonl``, ``test-00000-of-00001.parquet``,
    ``test/``); a single file is its only split.
    """
    local = Path(path).expanduser()
    if not local.exists() and _looks_local(path, None):
        raise SourceError(f"{path}: there is no such file or folder{_near(local)}. Set dataset.origins.paths.")
    try:
        return _load(_of_split(local, split) if local.exists() else path, None, None, split, streaming=False)
    except SourceError:
        raise
    except Exception as error:  # datasets raises many kinds for what it cannot read
        raise SourceError(
            f"{path}, split {split!r}, cannot be opened ({type(error).__name__}: {_first_line(error)}). "
            "Set dataset.origins.paths to a local copy, or leave it out by dataset.origins.only."
        ) from error


def _of_split(path: Path, split: str) -> Path | list[Path]:
    if not path.is_dir() or _is_saved(path):
        return path
    found = _named_after(split, path)
    if not found:
        raise SourceError(f"{_nothing(path, split)} Name a file {split}.jsonl.")
    return found


def _chosen(path: Path, split: str | None) -> Path | list[Path]:
    """What is read of ``path``: the files of ``split`` where files are named after splits, else all of it."""
    if split is None or not path.is_dir() or _is_saved(path):
        return path
    found = _named_after(split, path)
    if not found and path.name != split and any(_named_after(name, path) for name in SPLITS):
        raise SourceError(f"dataset.path is {_nothing(path, split)} Set dataset.split=…, or to null for all files.")
    return found or path


def _named_after(split: str, folder: Path) -> Path | list[Path]:
    """The folder of a split, or the files whose name begins or ends with it, shards numbered or not."""
    if (folder / split).is_dir():
        return folder / split
    name = re.compile(rf"{re.escape(split)}(?:[-._].*)?|.*[-._]{re.escape(split)}(?:[-._]\d+)?(?:-of-\d+)?")
    files = [file for file in _sorted(folder) if _suffix(file) in READERS]
    return [file for file in files if name.fullmatch(file.name[: file.name.lower().rindex(_suffix(file))])]


def _nothing(path: Path, split: str) -> str:
    there = sorted(file.name for file in path.iterdir())
    return f"{path}: nothing of split {split!r} is in it; it has {there}."


def _load(
    path: Path | list[Path] | str, format: str | None, config: str | None, split: str | None, streaming: bool
) -> Any:
    import datasets

    if isinstance(path, str):
        found = datasets.load_dataset(path, config, split=split, streaming=streaming)
        return found if split else found[_only_split(found, None, path)]
    if _is_saved(path):
        saved = datasets.load_from_disk(str(path))
        return saved[_only_split(saved, split, path)] if isinstance(saved, datasets.DatasetDict) else saved
    reader, files = _files(path, format)
    extra: dict[str, Any] = {"sep": "\t"} if _suffix(files[0]) == ".tsv" else {}
    names = [str(file) for file in files]
    return datasets.load_dataset(reader, data_files={"train": names}, split="train", streaming=streaming, **extra)


def _is_saved(path: Path | list[Path]) -> TypeGuard[Path]:
    """Whether ``save_to_disk`` wrote it."""
    return isinstance(path, Path) and any((path / marker).exists() for marker in ("state.json", "dataset_dict.json"))


def _files(path: Path | list[Path], format: str | None) -> tuple[str, list[Path]]:
    """What reads the files of ``path``, and the files."""
    if isinstance(path, Path):
        found = [file for file in _sorted(path) if _suffix(file) in READERS] if path.is_dir() else [path]
    else:
        found = path
    if not found:
        raise SourceError(f"dataset.path is {path}: the folder holds no {', '.join(READERS)} file")
    reader = {"jsonl": "json"}.get(format or "", format) or READERS.get(_suffix(found[0]))
    if reader is None:
        raise SourceError(
            f"dataset.path is {path}: its format cannot be told from {_suffix(found[0]) or 'its name'!r}; "
            f"expected one of {', '.join(READERS)}. Set dataset.format=jsonl (or json, csv, parquet, arrow)."
        )
    return reader, found


def _only_split(saved: Any, split: str | None, path: Path | str) -> str:
    if split in saved:
        return str(split)
    if split is None and len(saved) == 1:
        return str(next(iter(saved)))
    raise SourceError(
        f"dataset.path is {path}: split {split!r} is not in it; it has {sorted(map(str, saved))}. Set dataset.split=…; "
        "a held-out set is written out with its path and split (_target_: bestofn.builders.sources.mapped.Mapped)."
    )


def _suffix(file: Path) -> str:
    suffixes = [suffix for suffix in file.suffixes if suffix not in COMPRESSION]
    return suffixes[-1].lower() if suffixes else ""


def _sorted(folder: Path) -> list[Path]:
    """What is in ``folder``, part-2 before part-10: origins are found by the number of a row over all files."""

    def place(file: Path) -> tuple[list[Any], str]:
        texts = re.split(r"(\d+)", file.name)
        return [int(text) if odd % 2 else text for odd, text in enumerate(texts)], file.name

    return sorted(folder.iterdir(), key=place)


def _looks_local(path: str, format: str | None) -> bool:
    return format is not None or path.startswith((".", "/", "~")) or _suffix(Path(path)) in READERS


def _near(path: Path) -> str:
    beside = [file.name for file in path.parent.iterdir()] if path.parent.is_dir() else []
    match = nearest(path.name, beside)
    return f"; did you mean {path.parent / match}?" if match else ""


def _first_line(error: Exception) -> str:
    return (str(error).splitlines() or [""])[0][:300]
