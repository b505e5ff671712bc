"""Measures speed and limits of the math verifier and of Math-Verify, on the pairs of the test table.

Prints the ratio of comparisons per second (interleaved, one core) and the median time per kind of answer. Then it prints
the time and memory that each costly expression of the tests needs, in a separate process. Caches are cleared before each
round.
"""

from __future__ import annotations

import importlib.util
import statistics
import subprocess
import sys
import time
from pathlib import Path
from types import ModuleType

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT))

from bestofn.verifiers.math import judge  # noqa: E402
from bestofn.verifiers.math.normalisation import normal  # noqa: E402
from bestofn.verifiers.math.reading import read  # noqa: E402

BOMBS_ALONE = """
import resource, sys, time
sys.path.insert(0, {root!r})
from tests_bombs import BOMBS
from bestofn.verifiers.math import judge
seconds = []
for bomb in BOMBS:
    started = time.perf_counter()
    outcome = judge("8", "\\\\boxed{{" + bomb + "}}").outcome
    seconds.append(time.perf_counter() - started)
    assert outcome == "abstain", (bomb[:60], outcome)
peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
print(f"{{len(BOMBS)}} bombs, all undecided: slowest {{max(seconds) * 1e3:.1f}} ms, peak memory {{peak:.0f}} MB")
"""


def main() -> None:
    pairs = list(load(ROOT / "tests" / "verifiers" / "math" / "test_pairs.py").PAIRS)
    texts = [(kind, reference, f"So the answer is \\boxed{{{answer}}}.") for kind, reference, answer, _ in pairs]
    judge("1 km", r"\boxed{1000\ \text{m}}")  # imports pint
    ours, theirs = {}, []
    verdict = math_verify()
    for kind, reference, text in texts:
        read.cache_clear(), normal.cache_clear()
        started = time.perf_counter()
        judge(reference, text)
        between = time.perf_counter()
        verdict(reference, text)
        ours.setdefault(kind, []).append(between - started)
        theirs.append(time.perf_counter() - between)
    all_ours = [seconds for kind in ours.values() for seconds in kind]
    print(f"{len(texts)} pairs; comparisons per second, ours : Math-Verify = {sum(theirs) / sum(all_ours):.1f} : 1")
    for kind, seconds in ours.items():
        print(f"  {kind:48} median {statistics.median(seconds) * 1e3:.3f} ms  max {max(seconds) * 1e3:.2f} ms")
    bombs()


def bombs() -> None:
    source = BOMBS_ALONE.format(root=str(ROOT)).replace(
        "from tests_bombs import BOMBS",
        f"import importlib.util as u; s = u.spec_from_file_location('b', {str(ROOT / 'tests/verifiers/math/test_bombs.py')!r}); "
        "m = u.module_from_spec(s); s.loader.exec_module(m); BOMBS = m.BOMBS",
    )
    print(subprocess.run([sys.executable, "-c", source], capture_output=True, text=True, check=True).stdout.strip())


def math_verify():
    from math_verify import parse, verify

    return lambda reference, text: verify(parse(f"${reference}$"), parse(text))


def load(path: Path) -> ModuleType:
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


if __name__ == "__main__":
    main()
