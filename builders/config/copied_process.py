"""Composes a configuration in a copy of this process, while this process imports the modules of the command.

The import of Hydra and the composition take half of the time before the first request of a build. With two processors,
both halves run at the same time. This process then does not import Hydra.
"""

from __future__ import annotations

import contextlib
import importlib
import io
import multiprocessing
import pickle
import sys
from collections.abc import Callable, Iterable
from multiprocessing.connection import Connection
from pathlib import Path
from typing import TypeVar

from bestofn.builders.config.choices import conf_folder, read_yaml, shipped_groups
from bestofn.builders.errors import ConfigError
from bestofn.sandbox.forked import ForkedProcess, can_fork

Result = TypeVar("Result")


def result_of_copy(function: Callable[[], Result | None], modules: Iterable[str]) -> Result | None:
    """Call ``function`` in a copy of this process. Meanwhile, import ``modules`` in this process.

    Return the result of ``function``. Raise its ``ConfigError``. Return None if this process must call ``function``
    itself. This is the case if the process cannot be copied or has already imported Hydra. It is also the case if
    ``function`` returns None, raises another exception or prints something. A module that is not installed is not
    imported.
    """
    if "hydra" in sys.modules or not can_fork():
        return None
    receiver, sender = multiprocessing.Pipe(duplex=False)
    with receiver:
        try:
            process = ForkedProcess(lambda: _send_result(function, receiver, sender))
        except OSError:
            return None
        finally:
            sender.close()
        try:
            for module in modules:
                if receiver.poll():
                    break
                with contextlib.suppress(ImportError):
                    importlib.import_module(module)
            result = pickle.loads(receiver.recv_bytes())
        except EOFError:  # the copy was killed
            return None
        finally:
            process.kill()
            process.wait(timeout=60)
    if isinstance(result, ConfigError):
        raise result
    return result


def _send_result(function: Callable[[], object], receiver: Connection, sender: Connection) -> None:
    """Send the result of ``function`` or its ``ConfigError``; None if it raises another exception or prints something.

    This process ends without further effects.
    """
    receiver.close()
    printed, result = io.StringIO(), None
    with contextlib.redirect_stdout(printed), contextlib.redirect_stderr(printed):
        try:
            result = function()
        except ConfigError as error:
            result = ConfigError(str(error))
        except BaseException:  # of any type: the original process calls ``function`` again, and raises it again
            result = None
    with contextlib.suppress(BrokenPipeError):  # the original process has ended
        sender.send_bytes(pickle.dumps(None if printed.getvalue() else result))


def modules_of_choices(words: Iterable[str]) -> list[str]:
    """Return the modules of the classes that the choices in ``words`` name, if the choices are in conf/."""
    files = []
    for word in words:
        group, equals, name = word.partition("=")
        if equals and group in shipped_groups():
            files.append(conf_folder() / group / f"{name}.yaml")
    targets = (_target(file) for file in files)
    return [target.rpartition(".")[0] for target in targets if target.startswith("bestofn.")]


def _target(file: Path) -> str:
    """Return the dotted path of the class that ``file`` configures; "" if it names no class."""
    try:
        return str(read_yaml(file).get("_target_", ""))
    except (OSError, ConfigError):
        return ""
