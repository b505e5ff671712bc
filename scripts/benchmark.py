"""``bestofn benchmark accuracy [kinds=math,code] [sets=…] [data=…] [show=…]``: tests verifiers on labelled data.

The source tree has one program per kind of verifier, ``tests/benchmarks/accuracy_<kind>.py``. Each program has a
function ``main(arguments) -> exit code``. The function reads labelled sets from the folder ``data``, which is not part
of the project. The default is ``../shared/data``, next to the project.
"""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Sequence
from pathlib import Path

from bestofn.builders.config.arguments import Arguments
from bestofn.builders.config.command import run_command
from bestofn.builders.errors import ConfigError
from bestofn.builders.formats.nearest_match import did_you_mean, nearest
from bestofn.scripts.catalogue import BENCHMARK

BENCHMARKS = Path(__file__).resolve().parents[1] / "tests" / "benchmarks"


def main(words: Sequence[str] | None = None) -> None:
    """Run ``bestofn benchmark``. ``words`` are its command-line arguments; None reads ``sys.argv``."""
    run_command(BENCHMARK, benchmark, words)


def benchmark(arguments: Arguments) -> None:
    """Run the benchmark program of each kind in the setting ``kinds`` (default: all), then end the process.

    The exit code is the highest exit code of these programs. Raises ``ConfigError`` if a kind has no program.
    """
    chosen = (arguments.text("kinds") or ",".join(kinds())).split(",")
    for word in arguments.overrides:
        key = word.partition("=")[0]
        if nearest(key, BENCHMARK.settings, cutoff=0.8):
            raise ConfigError(f"`bestofn benchmark` has no setting {key!r}{did_you_mean(key, BENCHMARK.settings)}")
    missing = [kind for kind in chosen if kind not in kinds()]
    if missing or not chosen[0]:
        raise ConfigError(
            f"kinds={', '.join(missing) or repr('')}: {BENCHMARKS} has no such benchmark; "
            f"expected {', '.join(kinds()) or 'accuracy_*.py'}. The benchmarks are in a source checkout only."
        )
    raise SystemExit(max(run(kind, arguments.overrides) for kind in chosen))


def kinds() -> list[str]:
    """Return the kinds of verifiers that have a program in this source tree."""
    return sorted(path.stem.removeprefix("accuracy_") for path in BENCHMARKS.glob("accuracy_*.py"))


def run(kind: str, arguments: Sequence[str]) -> int:
    """Run the program for one kind of verifier and return its exit code."""
    path = BENCHMARKS / f"accuracy_{kind}.py"
    spec = importlib.util.spec_from_file_location(path.stem, path)
    if spec is None or spec.loader is None:
        raise FileNotFoundError(f"{path} cannot be loaded; expected a Python file")
    module = importlib.util.module_from_spec(spec)
    sys.modules[path.stem] = module
    spec.loader.exec_module(module)
    return int(module.main(arguments) or 0)


if __name__ == "__main__":
    main()
