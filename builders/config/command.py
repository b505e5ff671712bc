"""Runs one function as a Hydra command: its configuration is composed, resolved and handed over."""

from __future__ import annotations

import logging
import os
import sys
from collections.abc import Callable, Sequence
from typing import Any

from bestofn.builders.config.command_help import help_text
from bestofn.builders.config.composition import conf_folder, hydra_overrides, resolved, sweep_subfolder


def command(task: Callable[[dict[str, Any]], Any], config_name: str, arguments: Sequence[str]) -> None:
    """Run ``task(resolved configuration)`` as a Hydra command with ``arguments``; keeps Hydra's whole grammar.

    A ``BestofnError`` ends with its message and exit code; anything else is a bug and shows its traceback.
    """
    import hydra
    from hydra.errors import HydraException

    from bestofn.builders.errors import exit_on_error

    if {"-h", "--help"} & set(arguments):
        print(help_text(conf_folder(), config_name))
        return
    os.environ.setdefault("HYDRA_FULL_ERROR", "1")

    def guarded(config: Any) -> None:
        _quiet()
        with exit_on_error():
            task(resolved(config))

    try:
        with exit_on_error():
            program = os.path.basename(sys.argv[0])
            sys.argv = [program, *hydra_overrides([*arguments, *sweep_subfolder(arguments)], config_name)]
            hydra.main(config_path=str(conf_folder()), config_name=config_name, version_base="1.3")(guarded)()
    except HydraException as error:
        print(f"bestofn: {error}", file=sys.stderr)
        raise SystemExit(2) from None


def _quiet() -> None:
    """One short line a message on standard error, and no progress bars but our own."""
    import datasets

    logging.basicConfig(level=logging.INFO, format="%(message)s", stream=sys.stderr, force=True)
    for name in ("httpx2", "httpx", "datasets", "asyncio", "urllib3", "docker"):
        logging.getLogger(name).setLevel(logging.WARNING)
    datasets.disable_progress_bars()
