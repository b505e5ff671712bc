"""Records what the golden builds give now: ``python -m tests.golden.record "REASON" [BUILD…]``.

The reason says why a difference is wanted. It is added to ``differences.md`` with a summary of what changed.
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

from tests.golden.builds import BUILDS, obstacle, outcome
from tests.golden.comparison import differences
from tests.golden.storage import EXPECTED, store, stored

LISTED = Path(__file__).parent / "differences.md"
MOST_LISTED = 12  # differences per build; the others are counted


def main(words: list[str]) -> None:
    reason, names = (words[0], words[1:]) if words else ("", [])
    unknown = set(names) - {build.name for build in BUILDS}
    if unknown or reason in {build.name for build in BUILDS}:
        raise SystemExit(
            f'usage: python -m tests.golden.record "REASON" [{"] [".join(build.name for build in BUILDS)}]'
        )
    entries: list[str] = []
    for build in BUILDS:
        if names and build.name not in names:
            continue
        if problem := obstacle(build):
            print(f"{build.name}: left as it is, {problem}")
            continue
        with tempfile.TemporaryDirectory() as folder:
            lines = outcome(build, Path(folder))
        is_new = not (EXPECTED / f"{build.name}.jsonl").exists()
        found = [] if is_new else differences(stored(build.name), lines, sampled=build.sampled)
        if found and not reason:
            raise SystemExit("\n".join([f"{build.name}: say why this is wanted", *found[:MOST_LISTED]]))
        if is_new or found:
            store(build.name, lines)
        print(f"{build.name}: {'new' if is_new else f'{len(found)} differences'}")
        if found:
            more = [f"… and {len(found) - MOST_LISTED} more"] if len(found) > MOST_LISTED else []
            entries += [f"\n`{build.name}`\n", *(f"* {one}" for one in [*found[:MOST_LISTED], *more])]
    if entries:
        with LISTED.open("a", encoding="utf-8") as file:
            file.write("\n".join([f"\n## {reason}", *entries]) + "\n")


if __name__ == "__main__":
    main(sys.argv[1:])
