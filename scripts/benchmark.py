"""``bestofn benchmark accuracy|reward|steps|speed …``: measures verifiers, rewards and the speed of builds.

``accuracy`` measures verifiers with the package ``tests/benchmarks/accuracy``; its kind ``sandbox`` is the program
``tests/benchmarks/accuracy_sandbox.py``. ``accuracy`` needs a source checkout. The labelled data is not part of the
project; the default of ``data`` is ``../shared/data``, next to the project. ``reward`` and ``steps`` measure rewards
(``benchmark_reward``), and ``speed`` measures builds (``benchmark_speed``), also in an installed package.
"""

from __future__ import annotations

import importlib
import sys
from collections.abc import Sequence
from pathlib import Path
from types import ModuleType

from bestofn.builders.config.arguments import Arguments
from bestofn.builders.config.command import run_command
from bestofn.builders.errors import ConfigError
from bestofn.builders.formats.nearest_match import did_you_mean, nearest
from bestofn.scripts.catalogue import BENCHMARK

ROOT = Path(__file__).resolve().parents[1]
PACKAGE = "tests.benchmarks.accuracy"
OWN_PROGRAMS = ("sandbox",)
OF_ACCURACY = ("sets", "data", "json", "rows", "fit", "half", "show", "math_verify")
"""The settings of ``bestofn benchmark accuracy``, in addition to ``kinds``."""


def main(words: Sequence[str] | None = None) -> None:
    """Run ``bestofn benchmark``. ``words`` are its command-line arguments; None reads ``sys.argv``."""
    run_command(BENCHMARK, benchmark, words)


def benchmark(arguments: Arguments) -> None:
    """Run the benchmark that the user names. ``accuracy`` runs each kind in ``kinds``, then ends the process.

    The exit code is the highest exit code of these benchmarks. Raises ``ConfigError`` if the folder of the benchmarks
    does not exist, or if an argument is invalid.
    """
    (what,) = arguments.positionals["WHAT"]
    if what == "speed":
        from bestofn.scripts.benchmark_speed import speed_benchmark

        print(speed_benchmark(arguments))
        return
    if what != "accuracy":
        from bestofn.scripts.benchmark_reward import reward_benchmark

        print(reward_benchmark(arguments, what))
        return
    if not (ROOT / PACKAGE.replace(".", "/")).is_dir():
        raise ConfigError(f"{ROOT} has no folder tests/benchmarks. Accuracy is measured in a source checkout only.")
    for word in arguments.overrides:
        key = word.partition("=")[0]
        if nearest(key, BENCHMARK.settings, cutoff=0.8):
            raise ConfigError(f"`bestofn benchmark` has no setting {key!r}{did_you_mean(key, BENCHMARK.settings)}")
    if arguments.text("json") in ("true", "false"):
        raise ConfigError(
            f"json is {arguments.text('json')}; expected the file to write, for example json=accuracy.json."
        )
    use_tests_of(ROOT)
    kinds = (arguments.text("kinds") or "").split(",")
    codes = [run(f"{PACKAGE}_{kind}", arguments.overrides) for kind in kinds if kind in OWN_PROGRAMS]
    others = [kind for kind in kinds if kind not in OWN_PROGRAMS]
    if others:
        codes.append(run(f"{PACKAGE}.measure", [f"kinds={','.join(others)}", *words_of(arguments)]))
    raise SystemExit(max(codes))


def use_tests_of(root: Path) -> None:
    """Make ``import tests`` find the folder ``root/tests``, and not a package of that name on ``sys.path``."""
    folder = str(root / "tests")
    if folder not in getattr(sys.modules.get("tests"), "__path__", ()):
        package = ModuleType("tests")
        package.__path__ = [folder]
        sys.modules["tests"] = package


def words_of(arguments: Arguments) -> list[str]:
    """Return the overrides and all settings of ``accuracy`` except ``kinds``, as ``key=value`` words."""
    given = {key: arguments.settings[key] for key in OF_ACCURACY if arguments.settings[key] is not None}
    return [*(f"{key}={value}" for key, value in given.items()), *arguments.overrides]


def run(module: str, words: Sequence[str]) -> int:
    """Run the function ``main`` of a benchmark module and return its exit code."""
    return int(importlib.import_module(module).main(words) or 0)


if __name__ == "__main__":
    main()
