"""``bestofn doctor RUN``: checks the files of a run and repairs what can be repaired without a request."""

from __future__ import annotations

import json
from collections.abc import Sequence

from bestofn.builders.config.arguments import Arguments
from bestofn.builders.config.command import run_command
from bestofn.builders.errors import ConfigError
from bestofn.scripts.catalogue import DOCTOR


def main(words: Sequence[str] | None = None) -> None:
    """Run ``bestofn doctor``. ``words`` are its command-line arguments; None reads ``sys.argv``."""
    run_command(DOCTOR, check, words)


def check(arguments: Arguments) -> None:
    """Print the findings, and end with exit code 3 if some of them are not repaired."""
    from bestofn.builders.run.doctor import doctor

    run = arguments.run
    if not (run / "shards").is_dir():
        raise ConfigError(f"{run} has no folder `shards`. Expected the folder of a `bestofn build`.")
    findings = doctor(run, dry_run=arguments.flag("dry_run"))
    if arguments.flag("json"):
        facts = [
            {"file": str(one.file), "problem": one.problem, "done": one.done, "remedy": one.remedy} for one in findings
        ]
        print(json.dumps(facts, indent=2))
    else:
        print("\n".join(map(str, findings)) or f"{run}: nothing is damaged.")
    if any(not one.done for one in findings):
        raise SystemExit(3)


if __name__ == "__main__":
    main()
