"""A run on the Hugging Face Hub: its files as configs and splits, and a card that says what they are.

The files are uploaded as they lie in the run's folder, for ``push_to_hub`` would drop the metadata in their schemas.
Each is a commit of its own and the card comes last: a push that was cut off goes on where it was, and a repository
with a card is whole.
"""

from __future__ import annotations

import hashlib
import logging
import shutil
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bestofn.builders.analysis.figures_json import to_json
from bestofn.builders.analysis.run_figures import figures_of_run
from bestofn.builders.errors import AuthenticationError, ConfigError, OutageError, RequestError, SourceError
from bestofn.builders.report import card_plots
from bestofn.builders.run import manifest
from bestofn.builders.tables.parquet_files import file_side, rows_in, table_files

log = logging.getLogger(__name__)

ABOUT = {
    "dpo": "a pair: `prompt`, `chosen`, `rejected` as conversations, with scores and margin (`DPOTrainer`)",
    "reward_model": "a pair as two whole conversations, with `margin` (`RewardTrainer`)",
    "kto": "an answer with `label`: verified or refuted (`KTOTrainer`)",
    "sft": "the best verified answer of a query (`SFTTrainer`)",
    "prm": "an answer in steps, each with a label",
    "grpo": "a prompt with its reference (`GRPOTrainer`)",
    "candidates": "an answer with its verdict, reward, cost and timing",
}
OURS = (*ABOUT, card_plots.FOLDER)  # folders of the repository that hold nothing but what a push made


@dataclass(frozen=True, slots=True)
class Hub:
    """Where a run goes: ``repo`` as owner/name. ``licence`` is an identifier of the Hub, for the whole."""

    repo: str
    private: bool = True
    licence: str = "other"
    name: str = ""

    def __post_init__(self) -> None:
        if self.repo.count("/") != 1 or not all(self.repo.split("/")):
            raise ConfigError(f"repo is {self.repo!r}; expected owner/name")


def prepare(run: Path, hub: Hub) -> Path:
    """Write what would be uploaded to ``run``/hub and return it. Raises ``SourceError`` for an unfinished run."""
    folder = run / "hub"
    described = manifest.read(run)
    if described.get("state") != "complete":
        state = described.get("state", "without a manifest")
        raise SourceError(f"{run} is {state}; expected a complete build. Run the same `bestofn build` again.")
    shutil.rmtree(folder, ignore_errors=True)
    for path, source in data_files(run).items():
        target = folder / path
        target.parent.mkdir(parents=True, exist_ok=True)
        _link(source, target)
    shutil.copyfile(run / manifest.FILE, folder / manifest.FILE)
    manifest.write_text(folder / "config.yaml", yaml_text(described.get("config") or {}))
    found = to_json(figures_of_run(run))
    plots = card_plots.write(folder, found)
    manifest.write_text(folder / "README.md", card(run, hub, described, found, plots))
    return folder


def push(run: Path, hub: Hub) -> str:
    """Upload what is not there yet; returns the dataset's address.

    Raises ``AuthenticationError``, ``RequestError``, or ``OutageError`` when the Hub stays away; the same command then
    goes on where it was.
    """
    from httpx2 import TransportError
    from huggingface_hub import CommitOperationAdd, CommitOperationDelete, HfApi
    from huggingface_hub.errors import HfHubHTTPError

    folder = prepare(run, hub)
    api = HfApi()
    try:
        api.create_repo(hub.repo, repo_type="dataset", private=hub.private, exist_ok=True)
        there = remote_files(api, hub.repo)
        files = sorted(path for path in folder.rglob("*") if path.is_file())
        ours = {path.relative_to(folder).as_posix(): path for path in files}
        for name, path in sorted(ours.items(), key=lambda item: (item[0] == "README.md", item[0])):
            if there.get(name) in (sha256(path), git_blob(path)):
                log.info("%s is there already", name)
                continue
            operation = CommitOperationAdd(name, str(path))
            api.create_commit(hub.repo, [operation], commit_message=f"Add {name}", repo_type="dataset")
            log.info("%s uploaded", name)
        if stale := [name for name in there if name.split("/")[0] in OURS and name not in ours]:
            gone = [CommitOperationDelete(name) for name in stale]
            api.create_commit(hub.repo, gone, commit_message="Remove what this run has not", repo_type="dataset")
    except HfHubHTTPError as error:
        raise _translated(error, hub.repo) from error
    except (TransportError, OSError) as error:
        raise OutageError(f"the Hub could not be reached ({error}). The same command goes on where it was.") from error
    return f"{api.endpoint}/datasets/{hub.repo}"


def data_files(run: Path) -> dict[str, Path]:
    """Path in the repository -> file, for every view of the run that has rows."""
    found = {f"{view}/{path.name}": path for view in ABOUT for path in table_files(run / view) if rows_in([path])}
    if not found:
        raise SourceError(f"{run} holds no published view with rows; expected the folder of a finished build.")
    return found


def card(run: Path, hub: Hub, described: Mapping[str, Any], found: Mapping[str, Any], plots: Mapping[str, str]) -> str:
    """The dataset card; ``found`` are the run's figures, ``plots`` path -> what it shows.

    Raises ``ConfigError`` when its header cannot be read by the Hub's own parser.
    """
    import jinja2
    from huggingface_hub import DatasetCard

    files = data_files(run)
    template = (Path(__file__).parent / "card.md").read_text("utf-8")
    environment = jinja2.Environment(undefined=jinja2.StrictUndefined, keep_trailing_newline=True)
    environment.filters["cell"] = _cell
    text = environment.from_string(template).render(
        header="---\n" + yaml_text(header(hub, files, described)) + "---",
        plots=plots,
        **facts(hub, files, described, found),
    )
    try:
        DatasetCard(text)
    except ValueError as error:
        raise ConfigError(f"the card's header cannot be read: {error}") from error
    return text


def header(hub: Hub, files: Mapping[str, Path], described: Mapping[str, Any]) -> dict[str, Any]:
    """The YAML at the head of the card: configs with their splits, licence, tags, size."""
    views: dict[str, list[dict[str, str]]] = {}
    for view, sides in _sides(files).items():
        for side, tables in sides.items():
            path = f"{view}/{tables[0].name}" if len(tables) == 1 else f"{view}/{side}-*.parquet"
            views.setdefault(view, []).append({"split": side, "path": path})
    first = next(iter(views))
    return {
        "pretty_name": hub.name or hub.repo.split("/")[1],
        "license": hub.licence,
        "task_categories": ["text-generation", "reinforcement-learning"],
        "tags": ["preference", "best-of-n", "verified", "synthetic", "trl", "bestofn"],
        "size_categories": [size_category(int(described.get("queries") or 0))],
        "configs": [
            {"config_name": view, "data_files": listed, **({"default": True} if view == first else {})}
            for view, listed in views.items()
        ],
    }


def facts(
    hub: Hub, files: Mapping[str, Path], described: Mapping[str, Any], found: Mapping[str, Any]
) -> dict[str, Any]:
    """What the card says, from the data and from the manifest."""
    config = described.get("config") or {}
    sampling, dataset, provider = (config.get(key) or {} for key in ("sampling", "dataset", "provider"))
    dataset = dataset.get("source") or dataset  # a screened dataset is named by the one within
    sides = _sides(files)
    usd = found["cost"]["usd"]
    return {
        "name": hub.name or hub.repo.split("/")[1],
        "repo": hub.repo,
        "version": (described.get("versions") or {}).get("bestofn"),
        "notes": str(config.get("notes") or "").strip(),
        "n": found["n"],
        "queries": found["queries"],
        "records": found["records"],
        "outcomes": ", ".join(f"{count:,} {name}" for name, count in sorted(found["outcomes"].items())),
        "views": [{"name": view, "rows": _rows(found), "about": ABOUT[view]} for view, found in sides.items()],
        "first_view": next(iter(sides)),
        "model": found["metadata"].get("model") or provider.get("model"),
        "temperature": sampling.get("temperature"),
        "max_tokens": sampling.get("max_tokens"),
        **{key: _target(config.get(node)) for key, node in TARGETS.items()},
        "seed": config.get("seed"),
        "made": described.get("updated_at"),
        "cost": "no price known" if usd is None else f"${usd:,.2f}",
        "splits": list(_split_rows(found)),
        "curve": [
            {"k": p["k"], "mean": _percent(p["mean"]), "interval": f"{100 * p['low']:.1f}–{100 * p['high']:.1f}"}
            for p in found["pass_at"]
        ],
        "pairs": found["pairs"],
        "refusals": f"{found['refusals']['count']:,}",
        "skipped": described.get("skipped") or {},
        "sources": [
            {
                "name": str(dataset.get("name") or Path(str(dataset.get("path") or "not recorded")).name),
                "licence": str(dataset.get("licence") or dataset.get("license") or "not recorded"),
            }
        ],
    }


TARGETS = {"verifier": "verifier", "reward": "reward", "pairing": "pairs"}


def remote_files(api: Any, repo: str) -> dict[str, str]:
    """Path -> sha256 of large files, git blob id of others, as the Hub holds them."""
    from huggingface_hub.errors import EntryNotFoundError

    found = {}
    try:
        for entry in api.list_repo_tree(repo, recursive=True, repo_type="dataset"):
            lfs = getattr(entry, "lfs", None)
            if hasattr(entry, "blob_id"):
                found[entry.path] = lfs.sha256 if lfs else entry.blob_id
    except EntryNotFoundError:
        return {}
    return found


def size_category(queries: int) -> str:
    """The Hub's word for so many rows."""
    for limit, word in ((1_000, "n<1K"), (10_000, "1K<n<10K"), (100_000, "10K<n<100K"), (1_000_000, "100K<n<1M")):
        if queries < limit:
            return word
    return "1M<n<10M"


def yaml_text(value: Any) -> str:
    import yaml

    return yaml.safe_dump(value, sort_keys=False, allow_unicode=True)


def sha256(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def git_blob(path: Path) -> str:
    """The id that git gives a file's content."""
    data = path.read_bytes()
    return hashlib.sha1(b"blob %d\0" % len(data) + data).hexdigest()


def _split_rows(found: Mapping[str, Any]) -> Iterator[dict[str, str]]:
    parts = {**found["by_split"], "all": found} if len(found["by_split"]) > 1 else found["by_split"]
    for name, part in parts.items():
        low, high = part["rate_interval"] or (0.0, 1.0)
        yield {
            "name": name or "–",
            "queries": f"{part['queries']:,}",
            "candidates": f"{part['candidates']:,}",
            "rate": f"{_percent(part['rate'])} ({100 * low:.1f}–{100 * high:.1f})",
            "first": _percent(part["first"]),
            "best": _percent(part["best_of_n"]),
            "picked": _percent(part["picked"]),
        }


def _sides(files: Mapping[str, Path]) -> dict[str, dict[str, list[Path]]]:
    """View -> side -> its files; ``train`` first."""
    found: dict[str, dict[str, list[Path]]] = {}
    for path, file in sorted(files.items(), key=lambda item: file_side(item[1]) != "train"):
        found.setdefault(path.partition("/")[0], {}).setdefault(file_side(file), []).append(file)
    return {view: found[view] for view in dict.fromkeys(path.partition("/")[0] for path in files)}


def _rows(sides: Mapping[str, Sequence[Path]]) -> str:
    return " + ".join(f"{rows_in(files):,}{'' if side == 'data' else f' {side}'}" for side, files in sides.items())


def _cell(value: Any) -> str:
    """Text within a cell of a Markdown table, also within its backticks."""
    return " ".join(str(value).split()).replace("|", "\\|").replace("`", "'")


def _target(node: Any) -> str | None:
    return str(node["_target_"]).rsplit(".", 1)[-1] if isinstance(node, Mapping) and "_target_" in node else None


def _percent(share: float | None) -> str:
    return "–" if share is None else f"{100 * share:.1f} %"


def _link(source: Path, target: Path) -> None:
    """The same file under a second name where the disk allows it, else a copy."""
    try:
        target.hardlink_to(source)
    except OSError:
        shutil.copyfile(source, target)


def _translated(error: Any, repo: str) -> Exception:
    status = getattr(getattr(error, "response", None), "status_code", None)
    if status in (401, 403):
        return AuthenticationError(
            f"the Hub refused (status {status}); log in with `hf auth login`, with write access to {repo}"
        )
    if status is not None and status < 500:
        return RequestError(f"the Hub refused the upload to {repo}: {error}", status=status)
    return OutageError(f"the Hub failed ({error}). The same command goes on where it was.")
