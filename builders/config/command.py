"""Runs a command: parses its words, composes its configuration, calls its function and reports errors.

Every ``main`` in scripts/ calls ``run_command`` or, if the command has a YAML file in conf/, ``run_composed``.
"""

from __future__ import annotations

import logging
import os
import sys
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from bestofn.builders.concurrency.signals import exit_code_of, stopped_by_signals
from bestofn.builders.config.arguments import Arguments, Command, parse, wants_help
from bestofn.builders.config.current_command import choices
from bestofn.builders.errors import exit_on_error
from bestofn.builders.formats.terminal_text import TerminalHandler, escaped_output
from bestofn.builders.redaction.process import redact_output

if TYPE_CHECKING:
    from omegaconf import DictConfig

    from bestofn.builders.config.composition import Resolved

STOPPED = "\nbestofn: stopped."


def run_command(
    command: Command,
    task: Callable[[Arguments], object],
    words: Sequence[str] | None = None,
    *,
    stopped: str = STOPPED,
) -> None:
    """Parse ``words`` and run ``task(arguments)``. If ``words`` is None, the words of this process are parsed.

    A ``BestofnError`` ends the process with its message and exit code. Any other exception is a bug and shows its
    traceback. ``stopped`` is printed on Ctrl-C, SIGTERM and SIGHUP.
    """
    given = list(sys.argv[1:] if words is None else words)
    redact_output(given)
    with escaped_output(), exit_on_error(), stopped_by_signals():
        if _answered(command, given):
            return
        arguments = parse(command, given)
        try:
            task(arguments)
        except KeyboardInterrupt as error:
            print(stopped, file=sys.stderr)
            raise SystemExit(exit_code_of(error)) from None


def run_composed(
    command: Command,
    task: Callable[[Resolved], object],
    words: Sequence[str] | None = None,
    *,
    first: Callable[[Arguments], Sequence[str]] = lambda arguments: (),
) -> None:
    """Parse ``words``, compose the configuration and run ``task(configuration)``, with Hydra's sweeps and launchers.

    ``first`` returns additional overrides. Overrides on the command line take precedence.
    """
    given = list(sys.argv[1:] if words is None else words)
    redact_output(given)
    with escaped_output(), exit_on_error(), stopped_by_signals():
        if _answered(command, given):
            return
        arguments = parse(command, given)
        overrides = [*first(arguments), *_positional_overrides(command, arguments), *arguments.overrides]
        _run_hydra(command.name, task, overrides, arguments)


def _run_hydra(
    config_name: str, task: Callable[[Resolved], object], overrides: Sequence[str], arguments: Arguments
) -> None:
    """Run ``task`` through Hydra: in a sweep once per combination of values, or with flags of Hydra.

    Raises ``ConfigError`` if the configuration cannot be composed.
    """
    import hydra

    from bestofn.builders.config.choices import conf_folder
    from bestofn.builders.config.composition import (
        check_settings,
        command_overrides,
        config_errors,
        hydra_overrides,
        refuse_removed_groups,
        refuse_sweeps,
        resolved,
        sweep_subfolder,
    )
    from bestofn.builders.config.public_config import public_output, redact_sweep_file

    def run_task(composed: DictConfig) -> None:
        configure_logging()
        redact_sweep_file()
        # a launcher may run this in a new process
        with escaped_output(), exit_on_error(), stopped_by_signals(), config_errors():
            refuse_removed_groups(overrides, choices())
            config = resolved(composed)
            if config_name != "build":  # a build checks its root keys itself
                check_settings(config, config_name)
            task(config)

    several = bool({"-m", "--multirun"} & set(arguments.flags))
    sweep = sweep_subfolder(overrides) if several else []
    with config_errors():
        words = hydra_overrides([*command_overrides(overrides), *overrides, *sweep], arguments.config_dirs)
        if not several:
            refuse_sweeps(overrides)
        os.environ.setdefault("HYDRA_FULL_ERROR", "1")
        sys.argv = [os.path.basename(sys.argv[0]), *arguments.flags, *words]
        with public_output(arguments.flags):
            hydra.main(config_path=str(conf_folder()), config_name=config_name, version_base="1.3")(run_task)()


def _answered(command: Command, words: Sequence[str]) -> bool:
    """Print the help or the version if ``words`` ask for it. Return whether something was printed."""
    if wants_help(words):
        from bestofn.builders.config.help import help_text

        print(help_text(command, words))
        return True
    if "--version" in words:
        from importlib.metadata import version

        print(f"bestofn {version('bestofn')}")
        return True
    return False


def _positional_overrides(command: Command, arguments: Arguments) -> list[str]:
    """Return one override per positional word that sets a key of the YAML file."""
    from bestofn.builders.config.composition import quoted

    overrides = []
    for positional in command.positionals:
        words = arguments.positionals.get(positional.name, ())
        if words and positional.key:
            value = list(words) if positional.most is None else words[0]
            overrides.append(f"{positional.key}={quoted(value)}")
    return overrides


def configure_logging() -> None:
    """Log one line per message to standard error, hide library messages below WARNING, and disable progress bars."""
    logging.basicConfig(level=logging.INFO, format="%(message)s", handlers=[TerminalHandler()], force=True)
    for handler in logging.getLogger().handlers:
        handler.addFilter(lambda record: getattr(record, "terminal", True))  # see ``run_log.ONLY_IN_FILE``
    for name in ("hydra", "httpx2", "httpx", "datasets", "asyncio", "urllib3", "docker"):
        logging.getLogger(name).setLevel(logging.WARNING)
    logging.getLogger("aiohttp").setLevel(logging.ERROR)  # its warnings quote headers; failures are counted by cause
    os.environ.setdefault("HF_DATASETS_DISABLE_PROGRESS_BARS", "1")  # datasets reads it when it is imported
    if datasets := sys.modules.get("datasets"):
        datasets.disable_progress_bars()
