"""The exact verifier: types, case, order, spaces and symbols count; quotes and spaces between parts do not."""

from __future__ import annotations

import asyncio

import pytest

import bestofn
from bestofn.builders.records import Candidate, Query, Reference
from bestofn.verifiers.by_split import domain_of
from bestofn.verifiers.exact import ExactVerifier, compare

CODE = "What does f('ab') return?\n\ndef f(text):\n    return text"

EQUAL = (
    ("'AB'", '"AB"'),
    ("'AB'", "The output is `'AB'`."),
    ("'AB'", "f('ab') returns 'AB'."),
    ("'AB'", "f('ab') == 'AB'"),
    ("'AB'", "[ANSWER]'AB'[/ANSWER]"),
    ("'AB'", "Die Ausgabe ist 'AB'."),
    ("'AB'", "答案是'AB'。"),
    ("'AB'", "<think>'CD'?</think>'AB'"),
    ("[1, 2]", "[1,2]"),
    ("[1, 2]", "```python\n[1, 2]\n```"),
    ("(1, 2)", "( 1, 2 )"),
    ("{'a': 1, 'b': 2}", "{'b': 2, 'a': 1}"),
    ("{'a': true}".replace("'", '"'), "{'a': True}"),
    ("{1, 2}", "{2, 1}"),
    ("None", "`None`"),
    ("True", "true"),
    ("7", "7."),
    ("7", '{"answer": 7}'),
    ("{'answer': 7}", "{'answer': 7}"),
    ("''", '""'),
    ("[[], {}]", "[[],{}]"),
    ("] ] )", "So the answer is ] ] )."),
    ("] ] )", "]])"),
    ("!=", "The operator is `!=`."),
    ("+", "La respuesta es +"),
    ("≥", "答案是≥"),
    ("≥", "\\geq"),
    (">", "\\boxed{>}"),
    ("\\boxed{>}", ">"),
    (".", "."),
)
DIFFERENT = (
    ("'AB'", "'ab'"),
    ("'a b'", "'ab'"),
    ("'x '", "'x'"),
    ("'a\\n'", "'a'"),
    ("'3-2'", "'1'"),
    ("'-7'", "'7'"),
    ("'1'", "1"),
    ("1", "'1'"),
    ("True", "1"),
    ("None", "'None'"),
    ("b'a'", "'a'"),
    ("[1, 2]", "[2, 1]"),
    ("[1, 2]", "(1, 2)"),
    ("[1, 2]", "{1, 2}"),
    ("[[]]", "[]"),
    ("{'a': 1}", "{'a': 2}"),
    ("{1: 'a'}", "{'1': 'a'}"),
    ("{1: 'a'}", "{True: 'a'}"),
    ("''", "' '"),
    ("'ab'", "'abababababababab"),
    ("[1, 2]", "[1, 3, 5, 7"),
    ("!=", "=="),
    (">=", "<="),
    ("{}", "[]"),
    ("♠", "♥"),
    ("\\boxed{>}", "\\boxed{<}"),
    ("] ] )", "] )"),
    ("++", "+"),
    ("//", "/"),
)
UNDECIDED = (
    ("'AB'", "AB"),  # may be the same string, written without quotation marks
    ("'ab'", "'ab"),  # the end is missing, and nothing else differs
    ("1", "1.0"),
    ("'aaa'", "'a' * 3"),
    ("'AB'", "I cannot run programs."),
    ("'AB'", "It does not return 'AB'"),
    ("'AB'", "It does not return 'CD'"),
    ("!=", "It is the operator of inequality."),
)


@pytest.mark.parametrize(("reference", "answer"), EQUAL)
def test_the_same_value_passes(reference: str, answer: str) -> None:
    assert compare(reference, answer).outcome == "pass"


@pytest.mark.parametrize(("reference", "answer"), DIFFERENT)
def test_another_value_fails(reference: str, answer: str) -> None:
    assert compare(reference, answer).outcome == "fail"


@pytest.mark.parametrize(("reference", "answer"), UNDECIDED)
def test_what_states_no_value_is_undecided(reference: str, answer: str) -> None:
    assert compare(reference, answer).outcome == "abstain"


def test_the_output_of_a_program_is_compared_with_its_case_and_spaces() -> None:
    output = "Hello, World!\n  2  3\n"
    assert compare(output, "```\nHello, World!\n  2  3\n```").outcome == "pass"
    assert compare(output, "Hello, World!\n  2  3  ").outcome == "pass"  # spaces at the end of a line are not visible
    assert compare(output, "```\nhello, World!\n  2  3\n```").outcome == "fail"
    assert compare(output, "```\nHello, World!\n2 3\n```").outcome == "fail"
    assert compare(output, "It prints a greeting.").outcome == "abstain"


def test_a_declared_tolerance_holds_inside_containers() -> None:
    assert compare("[0.5, 1000.0]", "[0.50001, 1000.001]", tolerance=1e-4).outcome == "pass"
    assert compare("[0.5, 1000.0]", "[0.51, 1000.0]", tolerance=1e-4).outcome == "fail"
    assert compare("1", "1.0", tolerance=1e-9).outcome == "pass"
    assert bestofn.verify("0.33334", "0.33333", kind="exact", tolerance=1e-4).outcome == "pass"
    with pytest.raises(ValueError, match="tolerance"):
        ExactVerifier(tolerance=-1)


def test_any_accepted_answer_passes_and_only_another_value_than_all_fails() -> None:
    query = Query("q", "", (), reference=Reference(answer="'a'", answers=("'b'",)))
    verifier = ExactVerifier()
    outcomes = [
        asyncio.run(verifier.verify(query, Candidate(0, ({"role": "assistant", "content": text},)))).outcome
        for text in ("'b'", "'c'", "a")
    ]
    assert outcomes == ["pass", "fail", "abstain"]


@pytest.mark.parametrize(
    ("reference", "question", "domain"),
    [
        ("'AB'", CODE, "exact"),
        ("7", CODE, "exact"),
        ("[1, 2]", CODE, "exact"),
        ("True", CODE, "exact"),
        ("'AB'", "", "exact"),
        ("!=", "Which operator means unequal?", "exact"),
        ("] ] )", "Complete the brackets.", "exact"),
        ("['a', 'b']", "Which letters?", "exact"),
        ('"Spirit Way"', "Which street leads to the port?", "short_answer"),
        ("7", "Compute 3 + 4.", "math"),
        ("9", "The function f is f(x) = x^2. What is the value of f(3)?", "math"),
        ("9", "Let f(x, y) = x + y. Find the result of f(4, 5) and return it.", "math"),
        ("(3, 4)", "A class of students walks from the point A(1, 2). Which value is it?", "math"),
        ("9", "What is printed?\n\nx = 3\nprint(x * x)", "exact"),
        ("9", "What is the value of x after this program?\n```python\nx = 3 * 3\n```", "exact"),
        ("[1, 2]", "Solve |x - 1.5| <= 0.5.", "math"),
        ("\\emptyset", "Solve x = x + 1.", "math"),
        ("False", "not ( True ) and ( True ) is", "math"),
    ],
)
def test_the_router_sends_literals_and_symbols_to_the_exact_verifier(
    reference: str, question: str, domain: str
) -> None:
    query = Query("q", "", ({"role": "user", "content": question},), reference=Reference(answer=reference))
    assert domain_of(query) == domain


def test_a_named_split_of_mathematics_stays_mathematics() -> None:
    assert domain_of(Query("q", "gsm8k", (), reference=Reference(answer="[1, 'a']"))) != "exact"
