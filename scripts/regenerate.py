"""``bestofn regenerate run=RUN where=failed``: draw chosen candidates of a run anew, the rest untouched."""

from __future__ import annotations

import copy
import shutil
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from bestofn.builders.config.composition import ROOT_GROUPS, compose
from bestofn.builders.errors import ConfigError, exit_on_error
from bestofn.builders.formats.nearest_match import unknown_key
from bestofn.builders.run import manifest
from bestofn.builders.run.regenerate import Order, Outcome, regenerate
from bestofn.builders.run.selection import WORDS

USAGE = f"""usage: bestofn regenerate run=RUN where=WHAT [key=value …]

where           {", ".join(WORDS)},
                split:NAME, query:ID, candidate:NUMBER, model:NAME, verifier:NAME, arm:greedy, variant:NAME;
                a comma means or, + means and, ! means not: where=failed+split:math,error
max             at most so many candidates
keep_if_better  true: a new answer takes its place only with a better verdict
output          work on a copy of the run in this folder
dry_run         true (or --dry-run): only count

Other settings change how is drawn: sampling.temperature=0.7 sampling.max_tokens=4096 provider=openai persona=none
stages.generate.system_prompt='…' budget_usd=5"""
OWN = ("run", "where", "max", "keep_if_better", "output", "dry_run")
CHANGEABLE = (
    "provider",
    "persona",
    "tools",
    "sampling",
    "seed",
    "stages",
    "budget_usd",
    "prices",
    "journal",
    "trusted",
)
LINKED = {"provider": "sampler", "persona": "persona", "tools": "tools", "sampling": "sampling"}


def main(arguments: Sequence[str] | None = None) -> None:
    words = list(sys.argv[1:] if arguments is None else arguments)
    if not words or words[0] in ("-h", "--help"):
        print(USAGE)
        return
    try:
        with exit_on_error():
            print(run(words))
    except KeyboardInterrupt:
        print("\nbestofn: stopped. Every answer is kept; the same command goes on from there.", file=sys.stderr)
        raise SystemExit(130) from None


def run(words: Sequence[str]) -> str:
    """Carry out the command and say what it did."""
    own, changes = _split(words)
    for key in ("run", "where"):
        if key not in own:
            raise ConfigError(f"{key}=… is missing\n{USAGE}")
    out = Path(own["run"])
    config = manifest.read(out).get("config")
    if not config:
        raise ConfigError(f"{out} is not a finished run: it has no {manifest.FILE}. Give the folder of a build.")
    dry_run = _truth(own.get("dry_run", "false"))
    if "output" in own and not dry_run:
        out = copied(out, Path(own["output"]))
    order = Order(
        where=own["where"],
        most=int(own["max"]) if "max" in own else None,
        keep_if_better=_truth(own.get("keep_if_better", "false")),
        changes=tuple(changes),
    )
    changed = changed_config(config, changes)
    changed.setdefault("journal", None)
    if changed["journal"] is None and "output" in own:
        changed["journal"] = str(Path(own["run"]) / "journal.sqlite")
    return said(regenerate(changed, out, order, dry_run=dry_run), out, dry_run)


def changed_config(config: Mapping[str, Any], changes: Sequence[str]) -> dict[str, Any]:
    """The run's resolved ``config`` with ``changes`` laid over it, in Hydra's grammar.

    A group choice (``provider=anthropic``) takes that group from the shipped files. The generate stage, whose settings
    were copies of the root's, gets the changed ones.
    """
    changed = copy.deepcopy(_without_redacted(dict(config)))
    before = copy.deepcopy(changed)
    choices = [word for word in changes if word.split("=")[0] in ROOT_GROUPS]
    composed = compose(list(changes)) if choices else {}
    chosen = {word.split("=")[0] for word in choices}
    for group in chosen:
        changed[group] = composed[group]
    for word in changes:
        key, _, value = word.lstrip("+").partition("=")
        if key.split(".")[0] not in chosen:
            _set(changed, key, value)
    if changed.get("seed") != before.get("seed") and changed["sampling"].get("seed") == before.get("seed"):
        changed["sampling"]["seed"] = changed["seed"]
    stage = changed["stages"]["generate"]
    for root, parameter in LINKED.items():
        if stage.get(parameter) == before.get(root):
            stage[parameter] = copy.deepcopy(changed.get(root))
    return changed


def copied(run_folder: Path, output: Path) -> Path:
    """A copy of the run in ``output``, without its journal and cache; one that is there already is gone on with."""
    if not (output / manifest.FILE).exists():
        shutil.copytree(run_folder / "shards", output / "shards", dirs_exist_ok=True)
        shutil.copy2(run_folder / manifest.FILE, output / manifest.FILE)
    return output


def said(outcome: Outcome, out: Path, dry_run: bool) -> str:
    """What a person wants to know of ``outcome``."""
    if outcome.note:
        return outcome.note
    if not outcome.chosen:
        return f"nothing to do: no candidate of {out} is meant"
    chosen = f"{outcome.chosen:,} candidates of {outcome.queries:,} queries"
    if dry_run:
        return f"{chosen} would be drawn anew; dry_run: nothing was sent"
    moves = ", ".join(f"{move}: {count:,}" for move, count in sorted(outcome.moves.items()))
    spent = outcome.spending
    return (
        f"{chosen} drawn anew in {out}, {outcome.replaced:,} put in place ({moves or 'taken from an earlier start'})\n"
        f"{spent.get('requests', 0):,} requests, ${spent.get('usd', 0.0):.4f}. What stood there before is in "
        f"{out / 'regenerations'}"
    )


def _split(words: Sequence[str]) -> tuple[dict[str, str], list[str]]:
    """(our own settings, the changes to the run's)."""
    own: dict[str, str] = {}
    changes = []
    for word in words:
        if word == "--dry-run":
            own["dry_run"] = "true"
            continue
        key, equals, value = word.partition("=")
        root = key.lstrip("+").split(".")[0]
        if not equals:
            raise ConfigError(f"{word!r} is not understood; expected KEY=VALUE\n{USAGE}")
        if key in OWN:
            own[key] = value
        elif root in CHANGEABLE:
            changes.append(word)
        else:
            raise ConfigError(
                unknown_key(key, root, [*OWN, *CHANGEABLE], "A regeneration")
                + " Verifier, reward and pairs are the run's own: change them with `bestofn build`."
            )
    return own, changes


def _set(config: dict[str, Any], key: str, value: str) -> None:
    import yaml

    *path, last = key.split(".")
    node = config
    for name in path:
        child = node.get(name)
        if not isinstance(child, dict):
            child = node[name] = {}
        node = child
    node[last] = yaml.safe_load(value)


def _without_redacted(value: Any) -> Any:
    """``value`` without the secrets that a manifest leaves out; they come from the environment again."""
    if isinstance(value, dict):
        return {key: _without_redacted(item) for key, item in value.items() if item != "***"}
    return value


def _truth(word: str) -> bool:
    if word.lower() in ("true", "1", "yes"):
        return True
    if word.lower() in ("false", "0", "no"):
        return False
    raise ConfigError(f"found {word!r}; expected true or false")


if __name__ == "__main__":
    main()
