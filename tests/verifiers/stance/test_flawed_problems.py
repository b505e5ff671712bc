"""Answers to malformed problems: the verdicts are right, and the stances (answers, asks, flags …) equal a table."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path

import pytest

from bestofn.builders.errors import BudgetError, ServiceError
from bestofn.builders.records import Candidate, Completion, Query, Reference, Verdict
from bestofn.verifiers.refusal.classifier import RefusalClassifier
from bestofn.verifiers.stance.flawed_problems import PosedVerifier
from bestofn.verifiers.stance.patterns import stance
from tests.growth import assert_linear

TABLE = Path(__file__).parents[1] / "tables" / "stances.txt"
ROWS = [line.split("\t", 1) for line in TABLE.read_text("utf-8").splitlines() if line and not line.startswith("#")]


DIALOGUE = Path(__file__).parents[1] / "tables" / "stances_dialogue.txt"
SPOKEN = [line.split("\t", 1) for line in DIALOGUE.read_text("utf-8").splitlines() if line and not line.startswith("#")]


class AlwaysPass:
    name = "always"

    async def verify(self, query: Query, candidate: Candidate) -> Verdict:
        return Verdict("pass", 1.0, "so it is", self.name, {"method": "none"})


class Told:
    """A sampler that returns a fixed reply or error and counts its requests."""

    name = model = identity = "told"

    def __init__(self, reply: str | Exception) -> None:
        self.reply, self.asked = reply, 0

    async def draw(self, request, indices=(0,), attempt: int = 0):
        self.asked += 1
        if isinstance(self.reply, Exception):
            return [self.reply for _ in indices]
        return [Completion({"role": "assistant", "content": self.reply}, "told") for _ in indices]


def query(posed: str = "contradiction", symbol: str = "") -> Query:
    metadata = {"posed": posed, "flaw": "two numbers for one thing", "symbol": symbol}
    return Query("q", posed, ({"role": "user", "content": "How many?"},), reference=Reference(), metadata=metadata)


def verdict(text: str, posed: str = "contradiction", **settings) -> Verdict:
    candidate = Candidate(0, ({"role": "assistant", "content": text},))
    return asyncio.run(PosedVerifier(AlwaysPass(), **settings).verify(query(posed), candidate))


@pytest.mark.parametrize(("expected", "text"), ROWS, ids=[text[:40] for _, text in ROWS])
def test_stances(expected: str, text: str) -> None:
    assert stance(text.replace("\\n", "\n").replace("\\\\", "\\"), "k") == expected


def test_stances_in_dialogues() -> None:
    wrong = [text for expected, text in SPOKEN if stance(text.replace("\\n", "\n")) != expected]
    assert len(wrong) <= 0.03 * len(SPOKEN), wrong


@pytest.mark.parametrize(
    ("expected", "text"),
    [
        ("asks", "How many books did she lose?"),
        ("asks", "Sure, I can help with that. In which city is the theatre?"),
        ("asks", "To complete the booking, I need the name of the second guest."),
        ("asks", "Would you like me to sort the list by price or by date?"),
        ("answers", "I have added milk to the list. Would you like me to add anything else?"),
        ("answers", "I found a room for both nights. Shall I proceed with the booking?"),
        ("answers", "The museum and the park are free. Please check their websites for opening hours."),
        ("answers", "Why does ice float? Because it is less dense than water."),
        ("refuses", "I'm sorry, I can't look up show times. Please check the website of the theatre."),
        ("refuses", "Ich kann leider keine Taxis bestellen."),
        ("calls", '{"name": "get_weather", "arguments": {"city": "Oslo"}}'),
        ("silent", "Okay, let me think about this."),
    ],
)
def test_what_a_dialogue_turn_does(expected: str, text: str) -> None:
    assert stance(text) == expected


def test_an_answer_that_ends_in_tool_calls_calls() -> None:
    calls = [{"id": "1", "type": "function", "function": {"name": "f", "arguments": "{}"}}]
    candidate = Candidate(0, ({"role": "assistant", "content": "", "tool_calls": calls},))
    found = asyncio.run(PosedVerifier(AlwaysPass()).verify(query(), candidate))
    assert (found.outcome, found.detail["stance"]) == ("abstain", "calls")


def test_a_statement_without_a_result_does_not_fail() -> None:
    found = verdict("She lost all of them on the way home.")
    assert (found.outcome, found.detail["stance"], found.detail["stance_rule"]) == ("abstain", "answers", "statement")


def test_a_letter_in_the_result_counts_only_where_the_question_left_it_undefined() -> None:
    assert stance("\\boxed{k + 22}", "k") == "flags"
    assert stance("\\boxed{k + 22}", "") == "answers"
    assert stance("\\boxed{k = 4}", "k") == stance("The answer is k = 4.", "k") == "answers"
    assert stance("\\boxed{24 \\text{ books}}", "k") == "answers"


@pytest.mark.parametrize(
    "piece",
    ["a ", "is not ", "{{", "what do ", "“a", "1.", "\\boxed{", "so 1 ", "so 1a", "so 1=", "i need ", "or? ", "sure "],
)
def test_long_and_hostile_answers_take_no_time(piece: str) -> None:
    assert_linear(lambda text: stance(text, "k"), piece, 400_000)


@pytest.mark.parametrize(
    ("text", "outcome"),
    [
        ("The two statements contradict each other.", "pass"),
        ("Could you clarify which number is right?", "pass"),
        ("The answer is 72.", "fail"),
        ("Let x be the unknown. Then 2x + 4 = 10, so x = 3.", "fail"),
        ("A and B are mutually exclusive, so P = 0.3 + 0.2 = 0.5.", "fail"),
        ("5 pieces are missing from the puzzle, so 95 remain.", "abstain"),
        ("The statements conflict. With the first, the answer is 72.", "abstain"),
        ("I'm sorry, but I can't help with that.", "abstain"),
        ("", "abstain"),
    ],
)
def test_verdicts_of_a_malformed_problem(text: str, outcome: str) -> None:
    assert verdict(text).outcome == outcome


def test_a_well_posed_problem_is_left_to_its_verifier() -> None:
    found = verdict("The answer is 72.", "well")
    assert (found.outcome, found.verifier) == ("pass", "always")
    assert found.detail["stance"] == "answers"
    assert (found.detail["method"], found.detail["stance_rule"]) == ("none", "result")
    assert 0.5 < found.detail["stance_confidence"] < 1.0


def test_an_answer_to_a_vague_request_may_be_fair() -> None:
    assert verdict("Here are 3 ways to do it.", "vague").outcome == "abstain"
    assert verdict("Please paste the code you mean.", "vague").outcome == "pass"


def test_a_refusal_that_is_right_is_marked_and_may_be_chosen() -> None:
    from bestofn.builders.pairing.strategies import best_vs_worst
    from bestofn.builders.records import Judged, Score

    judged = []
    for index, text in enumerate(["There is not enough information to say.", "The answer is 72."]):
        found = verdict(text, refusals=RefusalClassifier())
        candidate = Candidate(index, ({"role": "assistant", "content": text},))
        judged.append(Judged(candidate, found, Score(1.0 if found.outcome == "pass" else 0.0)))
    refusal = judged[0].verdict.detail["refusal"]
    assert refusal["is_refusal"]
    assert refusal["right"]
    assert not judged[1].verdict.detail["refusal"]["right"]
    assert [(pair.chosen, pair.rejected) for pair in best_vs_worst(judged)] == [(0, 1)]


def test_a_model_is_asked_only_where_words_do_not_tell() -> None:
    told = Told(json.dumps({"reasoning": "r", "stance": "flags"}))
    assert verdict("The answer is 72.", sampler=told).outcome == "fail"
    assert told.asked == 0
    found = verdict("Hm, those two sentences.", sampler=told)
    assert (found.outcome, found.detail["stance_rule"]) == ("pass", "model")
    assert told.asked == 1


@pytest.mark.parametrize("reply", ["no object", ServiceError("down")])
def test_a_model_without_a_readable_answer_changes_nothing(reply: str | Exception) -> None:
    assert verdict("Hm.", sampler=Told(reply)).outcome == "abstain"


def test_what_stops_the_run_is_raised() -> None:
    with pytest.raises(BudgetError):
        verdict("Hm.", sampler=Told(BudgetError("spent")))


def on(question: str, text: str) -> str:
    asked = Query("q", "math", ({"role": "user", "content": question},), metadata={"posed": "contradiction"})
    candidate = Candidate(0, ({"role": "assistant", "content": text},))
    return asyncio.run(PosedVerifier(AlwaysPass()).verify(asked, candidate)).outcome


EGGS = "A dozen eggs cost $3. What does a loaf cost?"
TRAIN = "A train leaves at 3. How far does it go?"
PRIME = "Find the even prime that is greater than 2."


@pytest.mark.parametrize(
    ("question", "text"),
    [
        (EGGS, "Nothing in the problem links the egg price of $3 to a loaf."),
        (EGGS, "There's not enough info here. We know that 12 eggs cost $3."),
        (EGGS, "It is indeterminate; only the eggs' price of $3 is known."),
        (EGGS, "Did the original question include a bread price? As written I only have the $3."),
        (PRIME, "There aren't any: every even number above 2 has the factor 2."),
        (PRIME, "None. 2 is the only even prime."),
        (PRIME, r"\boxed{\varnothing}"),
        ("x > 3 and x < 2. Find x.", "The two inequalities, x > 3 and x < 2, exclude each other."),
        ("Probabilities 0.7 and 0.6 of complementary events?", "The numbers must be in error: 0.7 + 0.6 = 1.3."),
        (TRAIN, "Die Geschwindigkeit ist nicht angegeben. Bekannt ist nur die Abfahrt um 15:03."),
        (TRAIN, "Falta información: no se indica la velocidad. Sale a las 15."),
        (TRAIN, "L'énoncé ne donne pas la vitesse du train, qui part à 15 h."),
        (TRAIN, "Mancano dati: sappiamo solo che parte alle 15."),
        (TRAIN, "Faltam dados: só sabemos que parte às 15."),
        (TRAIN, "Недостаточно данных: известно только время, 15 часов."),
        (TRAIN, "题目没有给出速度，只知道15点出发。"),
        (TRAIN, "速度が与えられていないため、求められません。出発は15時です。"),
        (TRAIN, "속도가 없습니다. 15시에 출발합니다."),
        (TRAIN, r"没有给出速度，若假设为 60，则 \boxed{180}"),
    ],
)
def test_an_answer_that_may_notice_the_flaw_does_not_fail(question: str, text: str) -> None:
    assert on(question, text) != "fail"


@pytest.mark.parametrize("text", ["A loaf costs $4.", r"\boxed{4}", "Ein Brot kostet 4 Dollar.", "面包的价格是4美元。"])
def test_a_figure_without_any_doubt_still_fails(text: str) -> None:
    assert on(EGGS, text) == "fail"
