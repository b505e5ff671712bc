"""Runs a command: parses its words, composes its configuration, calls its function and reports errors.

Every ``main`` in scripts/ calls ``run_command`` or, if the command has a YAML file in conf/, ``run_composed``.
"""

from __future__ import annotations

import logging
import os
import sys
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, NamedTuple

from bestofn.builders.concurrency.signals import exit_code_of, stopped_by_signals
from bestofn.builders.config.arguments import Arguments, Command, parse, wants_help
from bestofn.builders.config.copied_process import result_of_copy
from bestofn.builders.config.current_command import CurrentCommand, choices, given_words, running
from bestofn.builders.config.single_run import single_run
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
    early_modules: Callable[[Sequence[str]], Iterable[str]] | None = None,
) -> None:
    """Parse ``words``, compose the configuration and run ``task(configuration)``, with Hydra's sweeps and launchers.

    ``first`` returns additional overrides. Overrides on the command line take precedence. If ``early_modules`` is set,
    a copy of this process composes the configuration. Meanwhile, this process imports the modules that the function
    returns for the overrides.
    """
    given = list(sys.argv[1:] if words is None else words)
    redact_output(given)
    with escaped_output(), exit_on_error(), stopped_by_signals():
        if _answered(command, given):
            return
        arguments = parse(command, given)
        overrides = [*first(arguments), *_positional_overrides(command, arguments), *arguments.overrides]
        if arguments.flags or any(word.lstrip("+~").startswith("hydra") for word in overrides):
            run_hydra(command.name, task, overrides, arguments)
            return

        def compose() -> Composed | None:
            return _composed(command.name, overrides, arguments.config_dirs)

        composed = result_of_copy(compose, early_modules(overrides)) if early_modules else None
        if composed := composed or compose():
            with running(composed.command):
                _run_task(command.name, task, lambda: composed.config)
        else:
            run_hydra(command.name, task, overrides, arguments)


class Composed(NamedTuple):
    """The configuration of a single run."""

    config: Resolved
    command: CurrentCommand


def _composed(config_name: str, overrides: Sequence[str], config_dirs: Sequence[str]) -> Composed | None:
    """Return the configuration of a single run; None if only ``hydra.main`` can run the command.

    Raises ``ConfigError`` if the configuration cannot be composed.
    """
    from bestofn.builders.config.composition import (
        command_overrides,
        config_errors,
        hydra_overrides,
        refuse_removed_groups,
        refuse_sweeps,
        resolved,
    )

    with config_errors():
        words = hydra_overrides([*command_overrides(overrides), *overrides], config_dirs)
        refuse_sweeps(overrides)
        with single_run(words, config_name) as config:
            if config is None:
                return None
            refuse_removed_groups(overrides, choices())
            plain = resolved(config)
            return Composed(plain, CurrentCommand(choices(), given_words()))


def _run_task(config_name: str, task: Callable[[Resolved], object], make: Callable[[], Resolved]) -> None:
    """Run ``task`` with the configuration of one run, which ``make`` returns."""
    from bestofn.builders.config.composition import check_settings, config_errors
    from bestofn.builders.config.public_config import redact_sweep_file

    configure_logging()
    redact_sweep_file()
    # a launcher may run this in a new process
    with escaped_output(), exit_on_error(), stopped_by_signals(), config_errors():
        config = make()
        if config_name != "build":  # a build checks its root keys itself
            check_settings(config, config_name)
        task(config)


def run_hydra(
    config_name: str, task: Callable[[Resolved], object], overrides: Sequence[str], arguments: Arguments
) -> None:
    """Run ``task`` through Hydra: in a sweep once per combination of values, or with flags of Hydra.

    Raises ``ConfigError`` if the configuration cannot be composed.
    """
    from bestofn.builders.config.composition import (
        command_overrides,
        config_errors,
        hydra_overrides,
        refuse_sweeps,
        resolved,
        sweep_subfolder,
    )

    def guarded(config: DictConfig) -> None:
        _run_task(config_name, task, lambda: resolved(config))

    several = bool({"-m", "--multirun"} & set(arguments.flags))
    sweep = sweep_subfolder(overrides) if several else []
    with config_errors():
        words = hydra_overrides([*command_overrides(overrides), *overrides, *sweep], arguments.config_dirs)
        if not several:
            refuse_sweeps(overrides)
        _hydra_main(config_name, guarded, arguments.flags, words)


def _hydra_main(
    config_name: str, task: Callable[[DictConfig], None], flags: Sequence[str], words: Sequence[str]
) -> None:
    """Run ``task`` through ``hydra.main``, which composes the configuration twice and parses ``flags``."""
    import hydra

    from bestofn.builders.config.choices import conf_folder
    from bestofn.builders.config.public_config import public_output

    os.environ.setdefault("HYDRA_FULL_ERROR", "1")
    sys.argv = [os.path.basename(sys.argv[0]), *flags, *words]
    with public_output(flags):
        hydra.main(config_path=str(conf_folder()), config_name=config_name, version_base="1.3")(task)()


def _answered(command: Command, words: Sequence[str]) -> bool:
    """Print the help or the version if ``words`` ask for it. Return whether something was printed."""
    if wants_help(words):
        from bestofn.builders.config.command_help import help_text

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
