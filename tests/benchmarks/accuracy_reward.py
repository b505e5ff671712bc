"""Published benchmarks of reward models, on rows in their published form.

    bestofn benchmark accuracy kinds=reward shape=reward_bench_2 file=rows.jsonl reward=skywork reward.path=…

``shape``: reward_bench_2, rm_bench, judge_bench or rmb; ``file``: its rows as JSON lines. The other arguments choose the
reward, as in ``bestofn build``. The rows are not part of the project.
"""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from bestofn.builders.records import Candidate, Message, Query, Verdict
from bestofn.reward.benchmark_scores import Margins, best_of_credit, style_accuracies, ties_score

SHAPES = ("reward_bench_2", "rm_bench", "judge_bench", "rmb")
Answers = tuple[tuple[Message, ...], list[str], list[str], str]  # prompt, right, wrong, group
UNKNOWN = Verdict("abstain", 0.0, "a benchmark row", "benchmark")


def answers_of(shape: str, row: Mapping[str, Any]) -> Answers:
    """Prompt, right answers, wrong answers and group of a row."""
    if shape == "judge_bench":
        first, second = row["response_A"], row["response_B"]
        right, wrong = (first, second) if row["label"] == "A>B" else (second, first)
        return _asked(row["question"]), [right], [wrong], str(row.get("source", "all"))
    if shape == "rmb":
        wrong = [one["answer"] for one in row["loser_list"]]
        group = str(row.get("category_path", "all")).split("/")[0]
        return tuple(row["conversation_input"]), [row["bon_best"]["answer"]], wrong, group
    group = str(row.get("subset") or row.get("domain") or "all")
    return _asked(row["prompt"]), list(row["chosen"]), list(row["rejected"]), group


async def measured(shape: str, rows: Iterable[Mapping[str, Any]], reward: Any) -> dict[str, float]:
    """Name -> accuracy. An answer without a value has the lowest score of its row."""
    credits: dict[str, list[float]] = {}
    styles: list[tuple[list[float], list[float]]] = []
    ties: dict[str, dict[str, Margins]] = {"ref": {}, "tied": {}}
    for number, row in enumerate(rows):
        messages, right, wrong, group = answers_of(shape, row)
        values = await _values(reward, Query(str(row.get("id", number)), "chat", messages), [*right, *wrong])
        good, bad = values[: len(right)], values[len(right) :]
        if group == "Ties":
            kind, _, prompt = str(row["id"]).partition(":")
            ties[kind][prompt] = Margins.of(good, bad)
        elif shape == "rm_bench":
            styles.append((good, bad))
        else:
            credits.setdefault(group, []).append(best_of_credit(good, bad))
    found = {group: sum(given) / len(given) for group, given in sorted(credits.items())}
    if styles:
        found |= {f"RM-Bench {name}": value for name, value in style_accuracies(styles).items()}
    if ties["ref"] or ties["tied"]:
        found |= {f"Ties {name}": value for name, value in ties_score(ties["ref"], ties["tied"]).items()}
    return found


def main(arguments: Sequence[str]) -> int:
    settings = dict(word.split("=", 1) for word in arguments)
    if "shape" not in settings:
        print(f"rewards: no rows were named. Set shape=… ({', '.join(SHAPES)}) and file=….")
        return 0
    shape, file = settings.pop("shape", ""), Path(settings.pop("file", ""))
    if shape not in SHAPES or not file.is_file():
        print(f"shape is {shape!r}, file is {str(file)!r}; expected one of {', '.join(SHAPES)} and its rows as JSON "
              "lines. Set shape=… file=…: nothing was measured.", file=sys.stderr)  # fmt: skip
        return 2
    rows = [json.loads(line) for line in file.open(encoding="utf-8")]
    for name, value in asyncio.run(_with_reward(settings, shape, rows)).items():
        print(f"{name:<24} {value:.3f}")
    return 0


async def _with_reward(settings: Mapping[str, str], shape: str, rows: Sequence[Mapping[str, Any]]) -> dict[str, float]:
    from bestofn.builders.config.composition import compose
    from bestofn.builders.config.objects import ObjectBuilder

    config = compose([f"{key}={value}" for key, value in settings.items() if key not in ("data", "show", "sets")])
    reward = ObjectBuilder().build(config["reward"], "reward")
    if not hasattr(reward, "__aenter__"):
        return await measured(shape, rows, reward)
    async with reward:
        return await measured(shape, rows, reward)


async def _values(reward: Any, query: Query, texts: Sequence[str]) -> list[float]:
    candidates = [Candidate(place, ({"role": "assistant", "content": text},)) for place, text in enumerate(texts)]
    scores = await reward.score(query, candidates, [UNKNOWN] * len(candidates))
    values = [score.value for score in scores]
    lowest = min((value for value in values if value is not None), default=0.0) - 1.0
    return [lowest if value is None else value for value in values]


def _asked(prompt: str) -> tuple[Message, ...]:
    return ({"role": "user", "content": prompt},)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
