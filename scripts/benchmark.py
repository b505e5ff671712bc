"""``bestofn benchmark accuracy [kinds=math,code] [sets=…] [data=…] [show=…]``: the verifiers against labelled data.

The measuring programs are ``tests/benchmarks/accuracy_<kind>.py`` of the source tree, one a kind of verifier, each with
``main(arguments) -> exit code``. They read labelled sets from the folder ``data`` (by default ``../shared/data`` beside
the project), which is not part of the project.
"""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Sequence
from pathlib import Path

BENCHMARKS = Path(__file__).resolve().parents[1] / "tests" / "benchmarks"


def main(arguments: Sequence[str] | None = None) -> None:
    words = list(sys.argv[1:] if arguments is None else arguments)
    if not words or words[0] in ("-h", "--help") or words[0] != "accuracy":
        found = "" if not words or words[0].startswith("-") else f"benchmark: there is no {words[0]!r}. "
        print(f"{found}{__doc__}\nKinds here: {', '.join(kinds()) or 'none'}")
        raise SystemExit(2 if found else 0)
    options: dict[str, str] = {key: value or "true" for key, _, value in (word.partition("=") for word in words[1:])}
    wanted = options.pop("kinds", ",".join(kinds())).split(",")
    missing = [kind for kind in wanted if kind not in kinds()]
    if missing or not wanted[0]:
        print(
            f"benchmark: found no measuring program for {', '.join(missing) or 'anything'} in {BENCHMARKS}; "
            f"expected one of {', '.join(kinds()) or 'accuracy_*.py'}. Run it from a source checkout.",
            file=sys.stderr,
        )
        raise SystemExit(2)
    rest = [f"{key}={value}" for key, value in options.items()]
    raise SystemExit(max(run(kind, rest) for kind in wanted))


def kinds() -> list[str]:
    """The kinds of verifiers that can be measured here."""
    return sorted(path.stem.removeprefix("accuracy_") for path in BENCHMARKS.glob("accuracy_*.py"))


def run(kind: str, arguments: Sequence[str]) -> int:
    """Run the measuring program of one kind; its exit code."""
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
