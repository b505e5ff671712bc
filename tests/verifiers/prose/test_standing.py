"""An answer that its writer denies, doubts, declines or takes back never passes, in any language of the tables."""

from __future__ import annotations

import asyncio

import pytest

from bestofn.builders.records import Candidate, Query, Reference
from bestofn.verifiers import get_verifier
from bestofn.verifiers.choice import judge_choice
from bestofn.verifiers.math.judge import judge
from bestofn.verifiers.prose.assertion import affirmed, denies, objection, withdrawn
from tests.growth import assert_linear

COLOURS = ("red", "green", "blue", "yellow")
DECLINED = [
    "I can't determine the product without the 4 numbers.",
    "\\boxed{\\text{I cannot determine the product without the 4 numbers}}",
    "Could you share the diagram? I only see 4 labels and can't answer yet.",
    "Je ne peux pas déterminer le produit sans les 4 nombres.",
    "Ohne die 4 Zahlen kann ich das Produkt nicht bestimmen.",
    "\\boxed{\\text{Nicht bestimmbar ohne die 4 Werte}}",
    "No es posible responder sin conocer los 4 valores.",
    "Non posso determinare il prodotto senza i 4 numeri.",
    "Não consigo determinar x a partir de 4 pontos.",
    "没有这4个数,我无法确定乘积。",
    "\\boxed{\\text{缺少4个数据,无法确定}}",
    "Недостаточно данных для решения задачи 4.",
]
DENIED = [
    "The answer is not {x}.",
    "Anything but {x}.",
    "The answer is anything other than {x}.",
    "{x} is wrong.",
    "La réponse n'est pas {x}.",
    "Ce n'est pas {x}.",
    "{x} est faux.",
    "Die Antwort lautet nicht {x}.",
    "Alles außer {x}.",
    "{x} ist falsch.",
    "La respuesta no es {x}.",
    "{x} es incorrecto.",
    "La risposta non è {x}.",
    "A resposta não é {x}.",
    "答案不是{x}。",
    "{x}是错误的。",
    "Ответ не {x}.",
    "答えは{x}ではありません。",
]
WITHDRAWN = [
    "{x}\n\nWait, I made a mistake; the correct answer is {y}.",
    "{x} Oops, I miscounted. It is {y}.",
    "{x}\n\nSorry, I misread the question. It is {y}.",
    "{x}. I take that back.",
    "{x}\n\nJe me suis trompé ; la bonne réponse est {y}.",
    "{x}\n\nIch habe einen Fehler gemacht; die richtige Antwort ist {y}.",
    "{x} Perdón, cometí un error, es {y}.",
    "{x} Anzi no, mi sono sbagliato, è {y}.",
    "{x}\n\nCometi um erro; a resposta correta é {y}.",
    "{x}\n\n我算错了,正确答案是{y}。",
    "{x}\n\nЯ ошибся; правильный ответ {y}.",
    "{x}\n\n間違えました。正しい答えは{y}です。",
]


@pytest.mark.parametrize("text", DECLINED)
def test_a_text_that_declines_does_not_pass_for_a_number_in_it(text: str) -> None:
    assert judge("4", text).outcome != "pass"


@pytest.mark.parametrize("text", DENIED)
def test_a_denied_value_does_not_pass(text: str) -> None:
    assert judge("7", text.format(x=7)).outcome != "pass"
    assert judge_choice(["A"], text.format(x="A"), COLOURS).outcome != "pass"
    assert _short("Paris", text.format(x="Paris")) != "pass"


@pytest.mark.parametrize("text", WITHDRAWN)
def test_an_answer_that_is_taken_back_does_not_pass(text: str) -> None:
    assert judge("7", "\\boxed{7} " + text.format(x="", y=9)).outcome != "pass"
    assert judge("9", "The answer is " + text.format(x=7, y=9)).outcome != "fail"
    assert judge_choice(["A"], "The answer is " + text.format(x="A", y="C"), COLOURS).outcome != "pass"
    assert _short("Paris", text.format(x="Paris", y="Lyon")) != "pass"


def test_a_reference_that_declines_or_denies_is_answered_by_one() -> None:
    assert judge("no solution", "\\boxed{\\text{no solution}}").outcome == "pass"
    assert judge("\\emptyset", "There are no real solutions.").outcome == "pass"
    assert judge("cannot be determined", "\\boxed{\\text{cannot be determined}}").outcome == "pass"


def test_doubts_that_end_at_the_same_value_take_nothing_back() -> None:
    assert judge("7", "\\boxed{7}\n\nWait, let me check again: 3 + 4 is 7.").outcome == "pass"
    assert not withdrawn(" Hold on. Yes, it is 7.", "7")


@pytest.mark.parametrize(
    "text",
    [
        "The answer is 9, not 8.",
        "It isn't 8; it's 9.",
        "Ce n'est pas 8, mais 9.",
        "Die Antwort ist 9, nicht 8.",
        "No es 8, sino 9.",
        "答案是9,不是8。",
    ],
)
def test_a_contrast_asserts_the_other_value(text: str) -> None:
    assert "9" in affirmed(text)
    assert "8" not in affirmed(text)
    assert judge("8", text).outcome != "pass"
    assert judge("9", text).outcome != "fail"


@pytest.mark.parametrize(
    "text",
    [
        "### Final Answer\n\n12",
        "**Final Answer:**\n\n12",
        "### Réponse finale\n\n12",
        "Réponse finale : 12",
        "## Antwort\n12",
        "### Respuesta final\n\n12",
        "Risposta: 12",
        "A resposta é 12.",
        "答案是12",
        "### 最终答案\n\n12",
        "答え:12",
        "Ответ: 12",
    ],
)
def test_announcements_and_headings_are_read(text: str) -> None:
    assert judge("12", text).outcome == "pass"
    assert judge("13", text).outcome == "fail"


@pytest.mark.parametrize(
    ("reference", "text"),
    [
        ("5", "Five of the 12 students passed."),
        ("5", "5 out of 12 students passed the exam."),
        ("5", "Of the 12 students, 5 passed."),
        ("3", "There are three algorithms with accuracy lower than 8."),
        ("3", "There are 3 dogs older than 8 years."),
        ("12", "Por lo tanto, Luis tiene 12 años (y María, 24)."),
        ("-5^\\circ", "\\boxed{-5}"),
        ("-5^\\circ", "-5 degrees"),
        ("156", '```json\n{"answer": "156kgs"}\n```'),
        ("21", "Order does not matter.\n\n**Conclusion.** There are 21 possible committees."),
        ("343", "I have no laboratory, but the standard figure is 343 m/s."),
        ("9", "\\fbox{9}"),
        ("12", "综上,答案是12元。"),
        ("12", "12個"),
        ("12", "答えは12円です。"),
    ],
)
def test_the_stated_value_is_read_and_no_value_that_it_is_compared_with(reference: str, text: str) -> None:
    assert judge(reference, text).outcome == "pass"


@pytest.mark.parametrize(
    ("reference", "text"),
    [
        ("6", "The median is **5**. Half have 5 or fewer, half have 6 or more."),
        ("12", "Five of the 12 students passed."),
        ("8", "There are three algorithms with accuracy lower than 8."),
        ("2", "\\boxed{2} and \\boxed{3}"),
        ("5^\\circ", "\\boxed{-5}"),
    ],
)
def test_a_number_that_only_serves_the_comparison_does_not_pass(reference: str, text: str) -> None:
    assert judge(reference, text).outcome != "pass"


def test_a_quoted_line_states_nothing() -> None:
    assert _short("Saturn", '> "It is Saturn."\n\nThe quoted claim is out of date. Jupiter holds the record.') != "pass"


def test_a_name_of_the_question_denies_nothing() -> None:
    question = "When was Billy Don't Be a Hero released?"
    assert denies("Billy Don't Be a Hero was released in 1974.")
    assert not denies("Billy Don't Be a Hero was released in 1974.", question)


def test_an_objection_needs_no_other_answer_after_it() -> None:
    assert objection("I can't confirm that it was Paris.", "Paris")
    assert objection("Paris. Sorry, it was Lyon.", "Paris")
    assert not objection("I don't have access to the news, but it was Paris.", "Paris")
    assert not objection("Lyon. Sorry, I was wrong: it was Paris.", "Paris")


def test_words_that_are_struck_out_are_not_read() -> None:
    assert judge("7", "~~The answer is 7.~~ The answer is 9.").outcome == "fail"


@pytest.mark.parametrize("part", ["not 8, ", "no ", "I was wrong. ", "不是8,", "nicht 7 sondern ", "\\boxed{7} wait, "])
def test_the_time_is_linear_in_the_length(part: str) -> None:
    assert_linear(lambda text: judge("7", f"{text}7"), part, 50_000)


def _short(reference: str, text: str) -> str:
    query = Query("q", "", ({"role": "user", "content": "Which city was it?"},), reference=Reference(answer=reference))
    candidate = Candidate(0, ({"role": "assistant", "content": text},))
    verdict = asyncio.run(get_verifier("short_answer").verify(query, candidate))
    return verdict.outcome
