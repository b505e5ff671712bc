"""``bestofn build``: draw, verify, score and pair."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from bestofn.builders.config.arguments import Arguments
from bestofn.builders.config.command import run_composed
from bestofn.builders.config.composition import choices, sweep_folder
from bestofn.builders.errors import BestofnError
from bestofn.scripts.catalogue import BUILD


def main(words: Sequence[str] | None = None) -> None:
    """Run ``bestofn build`` with the words of a command line."""
    swept: list[Path] = []

    def task(config: dict[str, Any]) -> None:
        build(config)
        if sweep_folder():
            swept.append(run_folder(config))

    run_composed(BUILD, task, words, first=from_yaml)
    if len(swept) > 1:
        from bestofn.scripts import inspect

        inspect.main([str(folder) for folder in swept])


def from_yaml(arguments: Arguments) -> list[str]:
    """The overrides of ``--from-yaml FILE``, an experiment file of the older form. The command line wins over them."""
    from bestofn.builders.config.older_files import overrides_of_file

    file = arguments.files.get("--from-yaml")
    return overrides_of_file(Path(file), os.environ) if file else []


def build(config: dict[str, Any]) -> dict[str, Any]:
    """Run the build that a resolved configuration describes; returns the run's manifest."""
    out = run_folder(config)
    if config.get("journal") is None and sweep_folder():
        config["journal"] = str(out.parent / "journal.sqlite")  # the jobs of a sweep share what they paid for
    if config.get("dry_run"):
        return dry_run(config, out)
    from bestofn.builders.analysis.run_figures import figures_of_run
    from bestofn.builders.config.objects import ObjectBuilder
    from bestofn.builders.report.headline import headline

    executor = ObjectBuilder(trusted=config.get("trusted") or ()).build(config["executor"], "executor")
    try:
        described = run(executor, config, out)
    except KeyboardInterrupt:
        print(
            f"\nbestofn: stopped. Every answer is kept in {out}; the same command goes on from there.", file=sys.stderr
        )
        raise SystemExit(130) from None
    except BestofnError as error:
        if (out / "manifest.json").exists():
            error.args = (f"{error}\nWhat was paid for is kept in {out}; the same command goes on from there.",)
        raise
    print(headline(figures_of_run(out, described), described, out))
    return described


def run(executor: Any, config: dict[str, Any], out: Path) -> dict[str, Any]:
    """Run the build into ``out``, and into the URL that the run's folder is, if it is one."""
    from bestofn.builders.run.mirror import Mirror, is_url

    url = str(config.get("out") or "")
    if not is_url(url):
        return executor.run(config, out)
    with Mirror(url, out) as mirror:
        described = executor.run(config, out)
        mirror.finish()
    return described


def run_folder(config: Mapping[str, Any]) -> Path:
    """``out`` if set, else a folder named by the choices: the same command finds its own run again."""
    if config.get("out"):
        from bestofn.builders.run.mirror import folder_of, is_url

        return folder_of(config["out"]) if is_url(config["out"]) else Path(config["out"])
    sweep = sweep_folder()
    if sweep:
        return sweep
    chosen = choices()
    experiment = (chosen.get("experiment") or "").replace("/", "-")
    names = [experiment] if experiment and experiment != "null" else [chosen.get("dataset"), chosen.get("provider")]
    return Path("runs") / "-".join(name for name in names if name)


def dry_run(config: Mapping[str, Any], out: Path) -> dict[str, Any]:
    """Send nothing: print the first rendered prompt and what the run would ask for."""
    from bestofn.builders.concurrency.event_loop import Loop
    from bestofn.builders.run import pipeline
    from bestofn.builders.sampling.cost import estimate

    with Loop() as loop:
        made = pipeline.create_run(config, out, loop)
        generate: Any = made.stages[0][0]
        first, count, characters = None, 0, 0
        for query in made.source:
            request = generate.request_builder.request(query)
            first = first or request
            count += 1
            characters += sum(len(str(message.get("content") or "")) for message in request.messages)
        if first is None:
            next(pipeline.shards(made.source, 1))  # says why there is no query
            raise AssertionError("unreachable")
        for message in first.messages:
            print(f"--- {message['role']} ---\n{message.get('content') or ''}")
        forecast = estimate(generate, queries=count, prompt_characters=characters, ledger=made.ledger)
        print(f"\n{forecast}\ndry_run: nothing was sent. The run would go to {out}.")
    return {"dry_run": True, "queries": count}


if __name__ == "__main__":
    main()
