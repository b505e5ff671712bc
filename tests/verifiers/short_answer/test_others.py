"""Answers that mention the accepted answer but state another one, and values that are nearly right."""

from __future__ import annotations

import pytest

from tests.verifiers.short_answer.test_verifier import outcome

PAINTER = ("Who painted the Mona Lisa?", "Leonardo da Vinci")
AUSTRALIA = ("What is the capital of Australia?", "Canberra")
WALL = ("In what year did the Berlin Wall fall?", "1989")
EVEREST = ("How tall is Mount Everest?", "8,849 metres")
ELECTION = ("Who won the 1996 election?", "Bill Clinton")


@pytest.mark.parametrize(
    ("asked", "answer"),
    [
        (PAINTER, "The Last Supper was painted by Leonardo da Vinci, but the Mona Lisa was painted by Raphael."),
        (PAINTER, "A student of Leonardo da Vinci."),
        (PAINTER, "Leonardo Da Vinci's student Salai painted it."),
        (AUSTRALIA, "Canberra is where parliament is, but the capital is Sydney."),
        (AUSTRALIA, "Sydney (some say Canberra)"),
        (AUSTRALIA, "Anything but Canberra"),
        (AUSTRALIA, "I doubt it's Canberra; Sydney."),
        (AUSTRALIA, "A capital da Austrália não é Canberra."),
        (AUSTRALIA, "Sydney. Canberra is only a small administrative town."),
        (AUSTRALIA, "It's Sydney; Canberra is often mistaken for it."),
        (AUSTRALIA, "Sydney, which is north of Canberra."),
        (AUSTRALIA, "Melbourne was the capital before Canberra; today it is Sydney."),
        (AUSTRALIA, "Canberra was the capital until 1990; now it is Sydney."),
        (("Which country is Zurich in?", "Switzerland"), "Germany, next to Switzerland."),
        (WALL, "Built in 1989, it fell in 1991."),
        (WALL, "1990, a year after 1989"),
        (WALL, "Before 1989."),
        (WALL, "After 1989"),
        (ELECTION, "Bill Clinton was defeated by Bob Dole."),
        (ELECTION, "Bill Clinton lost to Bob Dole."),
        (("Who is the CEO of Apple?", "Tim Cook"), "Steve Jobs, who was succeeded by Tim Cook"),
        (("Who was US president in 1990?", "George H. W. Bush"), "George W. Bush"),
        (EVEREST, "K2 is 8,849 metres; Everest is 8,611."),
        (EVEREST, "8,848 m"),
        (("What was the score?", "3-2"), "2-3"),
        (("Sort 3, 1, 2.", "1, 2, 3"), "3, 2, 1"),
    ],
)
def test_a_mention_of_another_thing_does_not_pass(asked: tuple[str, str], answer: str) -> None:
    assert outcome(*asked, answer) != "pass"


@pytest.mark.parametrize(
    ("asked", "answer"),
    [
        (PAINTER, "Without a doubt, Leonardo da Vinci painted it."),
        (PAINTER, "Raphael painted the School of Athens, but the Mona Lisa was painted by Leonardo da Vinci."),
        (AUSTRALIA, "Sydney is large, but the capital is Canberra."),
        (("Who won the 2018 World Cup?", "France"), "The French national team."),
        (("Name the currency of Japan.", "Japanese yen"), "JPY"),
        (("Which company makes the iPhone?", "Apple"), "AAPL"),
        (("What is the UN's health agency?", "World Health Organization"), "W.H.O."),
        (WALL, "Built in 1961, it fell in 1989."),
        (EVEREST, "8.849 km"),
        (("Who was succeeded by Tim Cook?", "Steve Jobs"), "Steve Jobs was succeeded by Tim Cook."),
        (("Who lost to Bill Clinton?", "Bob Dole"), "Bob Dole lost to Bill Clinton."),
        (("Whose pupil was Alexander?", "Aristotle"), "Aristotle taught him."),
        (("Who runs Apple?", "Tim Cook"), "Timothy Cook or, in short, Tim Cook: Tim D. Cook"),
    ],
)
def test_a_right_answer_next_to_others_does_not_fail(asked: tuple[str, str], answer: str) -> None:
    assert outcome(*asked, answer) != "fail"


@pytest.mark.parametrize(
    ("asked", "answer"),
    [
        (EVEREST, "About 8.8 km"),
        (("What is the speed of light?", "299,792,458 m/s"), "3 x 10^8 m/s"),
        (("Which gas do plants take in?", "carbon dioxide"), "CO2"),
        (("Which element has atomic number 6?", "Carbon"), "C"),
    ],
)
def test_roundings_and_symbols_abstain(asked: tuple[str, str], answer: str) -> None:
    assert outcome(*asked, answer) == "abstain"


@pytest.mark.parametrize(
    ("reference", "answer", "expected"),
    [
        ("Stephen King", "Stephen", "abstain"),
        ("Martin Luther King", "Martin Luther", "abstain"),
        ("Martin Luther", "It was Martin Luther King.", "abstain"),
        ("Pope Francis", "Francis", "pass"),
        ("Queen Victoria", "It was Victoria.", "pass"),
        ("Robert Downey Jr.", "Robert Downey", "pass"),
        ("Malcolm & Donald Campbell", "Malcolm Campbell", "abstain"),
        ("Malcolm & Donald Campbell", "Donald Campbell and his father Sir Malcolm Campbell", "abstain"),
        ("Malcolm & Donald Campbell", "Donald and Malcolm Campbell", "pass"),
    ],
)
def test_a_surname_is_not_a_title(reference: str, answer: str, expected: str) -> None:
    assert outcome("Who was it?", reference, answer) == expected


@pytest.mark.parametrize(
    ("question", "reference", "answer", "expected"),
    [
        ("How much is it?", "$5 million", "5 million euros", "abstain"),
        ("How much is it?", "$5 million", "5,000,000 dollars", "pass"),
        ("How much is it?", "$5 million", "$6 million", "fail"),
        ("What percentage is it?", "25%", "0.25", "abstain"),
        ("What percentage is it?", "25%", "0.35", "fail"),
        ("What disease is it?", "tuberculosis", "TB", "abstain"),
    ],
)
def test_amounts_and_abbreviations(question: str, reference: str, answer: str, expected: str) -> None:
    assert outcome(question, reference, answer) == expected
