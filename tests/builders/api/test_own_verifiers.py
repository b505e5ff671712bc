"""``kind`` and ``verifier`` take verifiers of the caller: an object, a class, a function, or a dotted path."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from datasets import Dataset

import bestofn
from bestofn.builders.errors import ConfigError
from bestofn.builders.records import Candidate, Query, Verdict
from tests.last_number import LastNumber

ROWS = [
    {"question": "1 + 1?", "reference": "2", "response": "It is 2"},
    {"question": "1 + 2?", "reference": "3", "response": "It is 4"},
]


def ends_with(response: str, reference: Any) -> bool:
    return response.endswith(str(reference))


def share(response: str, reference: Any) -> float:
    return 1.0 if ends_with(response, reference) else 0.25


async def judged(response: str, reference: Any) -> Verdict:
    return Verdict("pass" if ends_with(response, reference) else "fail", 0.7, "mine", "mine")


class Lenient:
    """A verifier with a setting, which accepts every response of at least ``least`` characters."""

    name = "lenient"

    def __init__(self, *, least: int = 0) -> None:
        self.least = least

    async def verify(self, query: Query, candidate: Candidate) -> Verdict:
        return Verdict("pass" if len(candidate.text) >= self.least else "fail", 1.0, "by length", self.name)


KINDS = {
    "a function": ends_with,
    "a number": share,
    "a coroutine": judged,
    "a lambda": lambda response, reference: ends_with(response, reference),
    "a class": LastNumber,
    "an object": LastNumber(),
    "the path of a class": "tests.last_number.LastNumber",
    "the path of a function": "tests.builders.api.test_own_verifiers.ends_with",
}


@pytest.mark.parametrize("name", KINDS)
def test_every_door_of_python_takes_it(name: str) -> None:
    kind: Any = KINDS[name]
    assert [bestofn.verify(one["response"], one["reference"], kind).outcome for one in ROWS] == ["pass", "fail"]
    with bestofn.verifier(kind) as verifier:
        assert verifier.verify("It is 2", "2").outcome == "pass"
    assert list(bestofn.verify_dataset(ROWS, kind=kind)["verification_status"]) == ["pass", "fail"]
    mapped = Dataset.from_list(ROWS).map(bestofn.Verify(kind), batched=True)
    assert [one["outcome"] for verdicts in mapped["verdicts"] for one in verdicts] == ["pass", "fail"]
    reward = bestofn.grpo_reward(kind)
    answers = {"reference": [row["reference"] for row in ROWS]}
    assert reward([row["question"] for row in ROWS], [row["response"] for row in ROWS], **answers) == [1.0, 0.0]


@pytest.mark.parametrize("name", ["a function", "an object", "the path of a class"])
def test_a_build_takes_it(name: str, tmp_path: Path) -> None:
    verifier: Any = KINDS[name]
    run = bestofn.build(ROWS, "recorded", verifier=verifier, sandbox="none", tools="none", out=tmp_path / "run")
    assert pq.read_table(run.folder / "candidates")["verification_status"].to_pylist() == ["pass", "fail"]
    assert run.manifest["state"] == "complete"
    shown = run._repr_html_()
    assert "2 queries" in shown
    assert "It is 4" in shown


def test_what_a_function_returns_decides() -> None:
    def outcome(result: object) -> str:
        return bestofn.verify("x", "y", lambda response, reference: result).outcome

    results = (True, 0.5, 0.4, None, float("nan"), 2, "yes")
    assert [outcome(one) for one in results] == ["pass", "pass", "fail", "abstain", "error", "error", "error"]


def test_the_reference_of_a_function_is_any_value() -> None:
    def keys(response: str, reference: Any) -> bool:
        return set(reference) == {"a", "b"}

    assert bestofn.verify("x", {"a": 1, "b": [2]}, keys).outcome == "pass"


def test_a_class_has_its_settings_and_other_things_are_refused() -> None:
    assert bestofn.verify("1234", "y", Lenient, least=5).outcome == "fail"
    for kind in (7, {"name": "math"}):
        with pytest.raises(ConfigError, match="expected the name of a verifier"):
            bestofn.verify("x", "y", kind)  # type: ignore[arg-type]
