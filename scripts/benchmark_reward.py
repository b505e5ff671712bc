"""``bestofn benchmark reward|steps file=… reward=NAME``: measures a reward on published benchmarks.

``bestofn.reward.benchmarks`` and ``bestofn.reward.step_benchmark`` compute the figures. The rows are not part of the
project: ``file`` names a file, or a dataset of the Hugging Face Hub with its ``split``.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

from bestofn.builders.config.arguments import Arguments
from bestofn.builders.errors import ConfigError
from bestofn.builders.records import JsonObject, Row
from bestofn.scripts.run_objects import OpenedObjects, opened_objects

FOLDER = Path("runs/benchmark")  # has the journal of judging rewards


def reward_benchmark(arguments: Arguments, what: str) -> str:
    """Measure the configured reward on the rows of ``file``. Return the figures as text.

    ``what`` is "reward" (rewards of answers) or "steps" (rewards of solution steps). If the setting ``json`` is given,
    the figures are also written to this file.
    """
    from bestofn.builders.formats.output_file import check_output_file
    from bestofn.builders.run.manifest import write_text
    from bestofn.builders.sources.rows import rows

    shape, file, out = _checked(arguments, what)
    if out:
        check_output_file(Path(out), "json")
    read = list(rows(file, split=arguments.text("split")))
    if not read:
        raise ConfigError(f"file is {file}, which has no rows.")
    with opened_objects(arguments, lambda objects, config: objects.build(config["reward"], "reward"), FOLDER) as opened:
        if what == "reward":
            figures, lines = _of_answers(opened, shape, read)
        else:
            figures, lines = _of_steps(opened, read)
    if out:
        write_text(Path(out), json.dumps(figures, indent=2) + "\n")
    return "\n".join(lines)


def _checked(arguments: Arguments, what: str) -> tuple[str, str, str | None]:
    """Return the settings ``shape``, ``file`` and ``json``. Raises ``ConfigError`` if one is missing or wrong."""
    from bestofn.reward.benchmarks import SHAPES

    shape, file = arguments.text("shape") or "", arguments.text("file") or ""
    if what == "reward" and shape not in SHAPES:
        raise ConfigError(f"shape is {shape or 'missing'}; expected one of {', '.join(SHAPES)}.")
    if not file:
        raise ConfigError("file is missing. Set file=… to the rows of the benchmark, for example file=rows.jsonl.")
    if not any(word.partition("=")[0] == "reward" for word in arguments.overrides):
        raise ConfigError("reward=… is missing. Name the reward to measure, for example reward=judge.")
    return shape, file, arguments.text("json")


def _of_answers(opened: OpenedObjects, shape: str, rows: Sequence[Row]) -> tuple[JsonObject, list[str]]:
    from bestofn.reward.benchmarks import as_json, lines_of, measure

    found = opened.loop.run(measure(shape, rows, opened.built))
    return as_json(found), list(lines_of(found))


def _of_steps(opened: OpenedObjects, rows: Sequence[Row]) -> tuple[JsonObject, list[str]]:
    from bestofn.reward.step_benchmark import measure_steps

    figures = opened.loop.run(measure_steps(rows, opened.built))
    shown = {
        "right": "right solutions without a wrong step",
        "first_error": "first wrong step found",
        "f1": "harmonic mean of both (F1)",
        "solution": "solutions judged correctly",
    }
    lines = []
    for name, text in shown.items():
        interval = figures.get(f"{name}_interval")
        lines.append(
            f"{text:<38} {figures[name]:.3f}" + (f" [{interval[0]:.3f}, {interval[1]:.3f}]" if interval else "")
        )
    lines.append(f"{figures['rows']:,} rows, {figures['unlabelled']:,} without a label left out")
    if figures["unread"]:
        lines.append(f"{figures['unread']:,} rows have no probabilities and count as wrong: {figures['reason'][:300]}")
    return figures, lines
