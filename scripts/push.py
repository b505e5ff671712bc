"""``bestofn push RUN hub.repo=OWNER/NAME``: uploads a run to the Hugging Face Hub, with its dataset card."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import nullcontext
from pathlib import Path
from typing import Any

from bestofn.builders.config.command import run_composed
from bestofn.scripts.catalogue import PUSH


def main(words: Sequence[str] | None = None) -> None:
    """Run ``bestofn push``. ``words`` are its command-line arguments; None reads ``sys.argv``."""
    run_composed(PUSH, push, words)


def push(config: dict[str, Any]) -> str:
    """Upload a run and return its URL. With ``dry_run``, only write the files to a folder and return the folder."""
    from bestofn.builders.config.objects import ObjectBuilder
    from bestofn.builders.errors import ConfigError
    from bestofn.builders.report import hub
    from bestofn.builders.run.run_lock import run_lock

    run = Path(config["run"])
    target = ObjectBuilder(trusted=config.get("trusted") or ()).build(config["hub"], "hub")
    if not isinstance(target, hub.Hub):
        raise ConfigError("no repository is set for the upload. Set hub=dataset hub.repo=owner/name.")
    checks = hub.PushChecks(bool(config.get("force")), bool(config.get("allow_key_like_text")))
    with run_lock(run) if run.is_dir() else nullcontext():
        if config.get("dry_run"):
            place = str(hub.prepare(run, target, checks))
            print(f"{place}: the files for {target.repo}; nothing was uploaded")
        else:
            place = hub.push(run, target, checks)
            print(place)
    return place


if __name__ == "__main__":
    main()
