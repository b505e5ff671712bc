"""Each rule-based reward ranks the better of two answers first, in all ten cases."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from bestofn.builders.records import Candidate, Persona, Query, Reference, Verdict
from bestofn.reward.code_reward import CodeReward, faults, parsed
from bestofn.reward.format_reward import FormatReward
from bestofn.reward.heuristic_reward import HeuristicReward
from bestofn.reward.length_reward import LengthReward
from bestofn.reward.overlap_reward import OverlapReward
from bestofn.reward.persona_reward import PersonaReward
from bestofn.reward.privacy_reward import PrivacyReward
from bestofn.reward.repetition_reward import RepetitionReward
from bestofn.reward.verification_reward import VerificationReward

WORDS = ("sun", "river", "stone", "tower", "apple", "train", "cloud", "table", "garden", "winter")
REASONED = "First we look at the {}, then we count. The answer is {} because the sum says so."
PERSONA = Persona("robot", "You are a robot.", markers=("beep", "malfunction"))

PAIRS: dict[str, tuple[Any, list[tuple[str, str]]]] = {
    "length": (LengthReward(free=20), [(word, f"{word} " * (30 + n)) for n, word in enumerate(WORDS)]),
    "repetition": (RepetitionReward(), [(" ".join([word, *WORDS]), f"{word} and " * 12) for word in WORDS]),
    "heuristic": (HeuristicReward(), [(REASONED.format(w, n), f"I'm not sure, {w}") for n, w in enumerate(WORDS)]),
    "format": (
        FormatReward(),
        [(f"<think>{word}</think><answer>{n}</answer>", f"{word}: {n}") for n, word in enumerate(WORDS)],
    ),
    "overlap": (OverlapReward(), [(f"the blue whale, a {word}", f"{word} of another kind") for word in WORDS]),
    "overlap by ROUGE-L": (
        OverlapReward("rouge_l"),
        [(f"the blue whale, a {word}", f"whale {word} blue the") for word in WORDS],
    ),
    "overlap by numbers": (OverlapReward("numbers"), [(f"{word}: 30", f"{word}: 3") for word in WORDS]),
    "privacy": (PrivacyReward(), [(f"ask the {word}", f"ask {word}@example.org") for word in WORDS]),
    "persona": (PersonaReward(PERSONA), [(f"Beep! The {word}. Malfunction.", f"The {word}.") for word in WORDS]),
    "code": (
        CodeReward(),
        [(f"```python\n{word} = {n}\n```", f"```python\n{word} = = {n}\n```") for n, word in enumerate(WORDS)],
    ),
}


@pytest.mark.parametrize("name", PAIRS)
def test_the_better_answer_is_first(name: str) -> None:
    reward, pairs = PAIRS[name]
    question = {"role": "user", "content": "Which animal is the largest?"}
    query = Query("q", "chat", (question,), reference=Reference(answer="the blue whale", answers=("30",)))
    for good, bad in pairs:
        candidates = [Candidate(i, ({"role": "assistant", "content": text},)) for i, text in enumerate((good, bad))]
        first, second = asyncio.run(reward.score(query, candidates, [Verdict("abstain", 0.0, "", "t")] * 2))
        assert first.value is not None
        assert second.value is not None
        assert first.value > second.value, (good, bad)


def test_verification_puts_every_pass_above_every_fail() -> None:
    candidates = [Candidate(index, ({"role": "assistant", "content": word},)) for index, word in enumerate(WORDS)]
    verdicts = [Verdict("pass" if index % 2 else "fail", index / 10, "", "t") for index in range(10)]
    query = Query("q", "math", ({"role": "user", "content": "?"},))
    values = [score.value for score in asyncio.run(VerificationReward().score(query, candidates, verdicts))]
    assert min(v for v in values[1::2] if v is not None) > max(v for v in values[0::2] if v is not None) - 1e-9


def test_code_is_read_and_never_run(tmp_path: Any) -> None:
    trap = tmp_path / "ran"
    assert not isinstance(parsed(f"open({str(trap)!r}, 'w')"), str)
    assert not trap.exists()
    for hostile in ("(" * 19_000, "x" * 200_000, "\0", "[" * 9_000 + "]" * 9_000):
        assert isinstance(parsed(hostile), str)
    for deep in (
        "-" * 19_000 + "1",
        "1+" * 9_000 + "1",
        "a" + ".b" * 9_000,
        "f" + "()" * 9_000,
        "lambda:" * 2_000 + "1",
    ):
        parsed(deep)  # returns a tree or a reason, and does not crash this process


def test_faults_of_style_by_line() -> None:
    assert faults("x = 1\n", 100) == 0
    assert faults("try:\n\tx = 1; y = 2 \nexcept:\n    pass\n" + "z" * 101, 100) == 3
    candidates = [
        Candidate(i, ({"role": "assistant", "content": text},))
        for i, text in enumerate(
            ("```python\nx = 1\n```", "```py\nx = 1 \n```", "no code", "```python\n" + "x = 1 \n" * 90)
        )
    ]
    query = Query("q", "code", ({"role": "user", "content": "?"},))
    scores = asyncio.run(CodeReward().score(query, candidates, [Verdict("abstain", 0.0, "", "t")] * 4))
    assert [score.value for score in scores] == pytest.approx([1.0, 0.95, 0.0, 0.5])
