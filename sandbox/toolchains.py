"""Finds the compilers on this machine, so that the boxes of ``LocalSandbox`` can read their folders."""

from __future__ import annotations

import os
import shutil
import subprocess
from functools import cache
from pathlib import Path

from bestofn.builders.errors import SandboxError

COMMANDS = {"typescript": "node", "cpp": "g++", "go": "go", "rust": "rustc", "java": "javac"}


def check_compilers(languages: tuple[str, ...]) -> None:
    """Raise ``SandboxError`` if this machine has no compiler for one of the languages."""
    for language in languages:
        if shutil.which(COMMANDS[language]) is None:
            raise SandboxError(
                f"sandbox.languages contains {language}, but this machine has no command {COMMANDS[language]}. "
                "Install it, or set sandbox=docker."
            )


@cache
def compiler_folders() -> tuple[list[str], list[str]]:
    """Return the folders that a box must be able to read, and the folders to add to its ``PATH``."""
    folders = [str(path) for path in sorted(Path("/etc").glob("java-*-openjdk"))]  # settings that a JDK of Debian needs
    programs = []
    for home in filter(None, (_home_of_rust(), _home_of("go"), _home_of("javac"))):
        if not home.is_relative_to("/usr"):
            folders.append(str(home))
            programs.append(str(home / "bin"))
    return folders, programs


def _home_of(command: str) -> Path | None:
    found = shutil.which(command)
    return Path(os.path.realpath(found)).parent.parent if found else None


def _home_of_rust() -> Path | None:
    """Return the folder of the Rust toolchain, as ``rustc`` itself reports it; None if Rust does not work.

    The path of the command ``rustc`` is not enough: with rustup it is only a proxy, outside the toolchain.
    """
    found = shutil.which("rustc")
    if not found:
        return None
    try:
        done = subprocess.run([found, "--print", "sysroot"], capture_output=True, text=True, timeout=20, check=True)
    except (OSError, subprocess.SubprocessError):
        return None
    return Path(done.stdout.strip())
