"""Coloured source code: the text stays the same, and nothing in it becomes an HTML tag."""

from __future__ import annotations

import html
import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bestofn.builders.report.code_colours import coloured

PIECES = ["'", '"', '"""', "`", "\\", "\n", "/*", "*/", "#", "//", "--", "<", "&", "</pre>", "def", "x1", "3.5", " "]


def marked(code: str, language: str) -> list[tuple[str, str]]:
    """Return the coloured tokens as (class, text)."""
    return [
        (kind, html.unescape(text))
        for kind, text in re.findall(r'<span class="(\w)">(.*?)</span>', coloured(code, language), re.DOTALL)
    ]


@settings(max_examples=50)
@given(
    st.one_of(st.lists(st.sampled_from(PIECES), max_size=30).map("".join), st.text(max_size=60)),
    st.sampled_from(["python", "js", "cpp", "java", "rust", "go", "bash", "SQL", "json", "", "console", "brainfuck"]),
)
def test_only_colours_are_added(code: str, language: str) -> None:
    shown = coloured(code, language)
    tags = set(re.findall(r"<[^>]*>", shown))
    assert tags <= {'<pre class="code">', "</pre>", "</span>", *(f'<span class="{kind}">' for kind in "csnk")}
    assert html.unescape(re.sub(r"<[^>]*>", "", shown)) == html.unescape(
        html.escape(code.strip("\n").rstrip(), quote=False)
    )


@pytest.mark.parametrize(
    ("language", "code", "expected"),
    [
        ("python", "def f():  # it's\n  '''a\nb'''", [("k", "def"), ("c", "# it's"), ("s", "'''a\nb'''")]),
        ("js", "const s = `a\n#b`; // '", [("k", "const"), ("s", "`a\n#b`"), ("c", "// '")]),
        (
            "rust",
            "fn f<'a>(x: &'a u8) { '<'; \"it's\" }",
            [("k", "fn"), ("k", "&"), ("k", "u8"), ("s", "'<'"), ("s", '"it\'s"')],
        ),
        (
            "bash",
            "if true; then echo 'a'; fi # 1\n",
            [("k", "if"), ("k", "then"), ("s", "'a'"), ("k", "fi"), ("c", "# 1")],
        ),
        ("sql", "SELECT 'a' -- x", [("k", "SELECT"), ("s", "'a'"), ("c", "-- x")]),
        ("json", '{"a": [true, 1.5]}', [("s", '"a"'), ("k", "true"), ("n", "1.5")]),
        ("c", '"never closed\nint', [("s", '"never closed'), ("k", "int")]),
        ("text", "def 'x' 1", []),
    ],
    ids=["python", "javascript", "rust", "bash", "sql", "json", "unclosed", "unknown"],
)
def test_tokens(language: str, code: str, expected: list[tuple[str, str]]) -> None:
    assert marked(code, language) == expected


def test_long_code_has_no_colours() -> None:
    """A lexer can need quadratic time: Java with "a a a …" takes seconds for 20,000 characters."""
    assert coloured("int x;\n" * 10_000, "java") == f'<pre class="code">{("int x;" + chr(10)) * 9_999}int x;</pre>'
