"""``bestofn push run=RUN hub.repo=OWNER/NAME``: send a run to the Hugging Face Hub, with its card."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from bestofn.builders.config.command import command


def main(arguments: Sequence[str] | None = None) -> None:
    command(push, "push", list(sys.argv[1:] if arguments is None else arguments))


def push(config: dict[str, Any]) -> str:
    """Upload the run that a resolved configuration names, or with ``dry_run`` write the folder; returns where it is."""
    from bestofn.builders.config.objects import ObjectBuilder
    from bestofn.builders.errors import ConfigError
    from bestofn.builders.report import hub

    if config["run"] in (None, "???"):
        raise ConfigError("run is missing. Name the folder of a build: bestofn push run=runs/mine hub.repo=me/mine")
    run = Path(config["run"])
    target = ObjectBuilder(trusted=config.get("trusted") or ()).build(config["hub"], "hub")
    if not isinstance(target, hub.Hub):
        raise ConfigError("hub names no repository. Set hub=dataset hub.repo=owner/name")
    if config.get("dry_run"):
        place = str(hub.prepare(run, target))
        print(f"{place}: what would be uploaded to {target.repo}; nothing was sent")
        return place
    place = hub.push(run, target)
    print(place)
    return place


if __name__ == "__main__":
    main()
