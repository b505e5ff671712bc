"""The constraints of Tülu 3's persona prompts: their names, and the arguments that the prompts state."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bestofn.verifiers.constraints.specs import COUNTS, QUOTING, WITHOUT_ARGUMENTS, from_prompt, read_constraints
from bestofn.verifiers.constraints.verifier import find

WORDS, SENTENCES = "length constraints:number of words", "length constraints:number of sentences"
BULLETS, PARAGRAPHS = "format:number of bullet lists", "length constraints:number of paragraphs"


@pytest.mark.parametrize(
    ("kind", "prompt", "expected"),
    [
        ("punctuation:use no comma", "Describe it without commas.", ("punctuation:no_comma", {})),
        (" give two responses", "Give two different answers.", ("combination:two_responses", {})),
        ("in english and capital", "Write in capital letters.", ("change_case:english_capital", {})),
        (WORDS, "List some libraries. Provide a short answer, not exceeding 75 words.", ("words", {"max": 75})),
        (WORDS, "Explain it in less than 1,000 words.", ("words", {"max": 999})),
        (WORDS, "Write at least fifty words.", ("words", {})),
        (WORDS, "Write more than 40 words about it.", ("words", {"min": 41})),
        (WORDS, "Write about 40 words.", ("words", {})),
        (WORDS, "Write a text of 40 words.", ("words", {})),
        (WORDS, "Use between 40 and 60 words.", ("words", {})),
        (SENTENCES, "Answer in exactly three sentences.", ("sentences", {"exactly": 3})),
        (SENTENCES, "Use two sentences in each paragraph.", ("sentences", {})),
        (SENTENCES, "Use two sentences, then three sentences.", ("sentences", {})),
        (SENTENCES, "Use 3-5 sentences.", ("sentences", {})),
        (PARAGRAPHS, "Write a 4-paragraph story.", ("paragraphs", {"exactly": 4})),
        (
            PARAGRAPHS,
            "Write 2 paragraphs, separated by ***.",
            ("length_constraints:number_paragraphs", {"num_paragraphs": 2}),
        ),
        (BULLETS, "Incorporate exactly 3 bullet points.", ("lists", {"kind": "bullet", "exactly": 3})),
        (BULLETS, "Write a list of 2 key bullet points.", ("lists", {"kind": "bullet", "exactly": 2})),
        ("format:number of highlighted sections", "Use 2 highlighted sections.", ("highlights", {"min": 2})),
        ("content:number of placeholders", "Include at least 2 placeholders.", ("placeholders", {"min": 2})),
        (
            "content:include a postscript",
            "End with a P.P.S. please.",
            ("detectable_content:postscript", {"postscript_marker": "P.P.S."}),
        ),
        ("format:title", "Add a title in double angular brackets, i.e. <<title>>.", ("detectable_format:title", {})),
        ("format:title", "Give it a title.", ("format:title", {})),
        (
            "include keywords",
            "Tell Ann's story \"The Sea\". Include the keywords 'salt', 'wind' and \"it's late\".",
            ("keywords:existence", {"keywords": ["salt", "wind", "it's late"]}),
        ),
        ("include keywords", "Include the words salt and wind.", ("keywords:existence", {})),
        (
            "keywords:exclude words",
            "Do not use the words “sea” or “sun.”",
            ("keywords:forbidden_words", {"forbidden_words": ["sea", "sun"]}),
        ),
        ("specific ending", 'End it with "That is all."', ("startend:end_checker", {"end_phrase": "That is all."})),
        ("specific ending", "Finish with a quote by Ada.", ("startend:end_checker", {})),
    ],
)
def test_arguments_are_read_where_the_prompt_states_them(
    kind: str, prompt: str, expected: tuple[str, dict[str, Any]]
) -> None:
    assert from_prompt(kind, prompt) == expected


def test_a_constraint_without_stated_arguments_is_undecided() -> None:
    value = {"kinds_of_tulu": [WORDS, "specific ending", "response language"], "prompt": "Write a longer text."}
    assert [find(one, "some words").kept for one in read_constraints(value)] == [None, None, None]


@given(st.sampled_from([*COUNTS, *QUOTING, *WITHOUT_ARGUMENTS, "else"]), st.text(max_size=60))
def test_any_prompt_is_read(kind: str, prompt: str) -> None:
    for one in read_constraints({"kinds_of_tulu": [kind], "prompt": prompt}):
        find(one, "A text.")
