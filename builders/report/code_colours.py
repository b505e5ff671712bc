"""Shows source code as safe HTML, with keywords, strings, comments and numbers coloured by Pygments."""

from __future__ import annotations

import html
import itertools
from functools import lru_cache
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pygments.lexer import Lexer

LONGEST = 4_000
"""Characters; longer code has no colours. The time of a lexer can grow with the square of the length of a text that
repeats itself, as models often do."""


def coloured(code: str, language: str = "") -> str:
    """Return ``code`` as a ``<pre>`` with coloured tokens; without colours if the language is unknown."""
    code = code.strip("\n").rstrip()
    lexer = _lexer(language.lower()) if len(code) <= LONGEST else None
    tokens = _tokens(lexer, code) if lexer else [("", code)]
    parts: list[str] = []
    for name, group in itertools.groupby(tokens, key=lambda token: token[0]):
        text = html.escape("".join(text for _, text in group), quote=False)
        parts.append(f'<span class="{name}">{text}</span>' if name else text)
    return f'<pre class="code">{"".join(parts)}</pre>'


def _tokens(lexer: Lexer, code: str) -> list[tuple[str, str]]:
    """Return the tokens of ``code`` as (CSS class, text). The end of a line ends a comment, so the code gets one."""
    tokens = [(_class_of(kind), text) for _, kind, text in lexer.get_tokens_unprocessed(f"{code}\n")]
    if "".join(text for _, text in tokens) != f"{code}\n":  # the lexer leaves text out
        return [("", code)]
    *others, (name, last) = tokens
    return [*others, (name, last.removesuffix("\n"))]


@lru_cache
def _lexer(language: str) -> Lexer | None:
    from pygments.lexers import get_lexer_by_name
    from pygments.util import ClassNotFound

    try:
        return get_lexer_by_name(language)
    except ClassNotFound:
        return None


@lru_cache
def _class_of(kind: Any) -> str:
    """Return the CSS class of a token type; "" for a token that has the colour of the text."""
    from pygments.token import Comment, Keyword, Name, Number, Operator, String

    classes = {Comment: "c", String: "s", Name.Tag: "s", Number: "n", Keyword: "k", Operator.Word: "k"}
    return next((name for parent, name in classes.items() if kind in parent), "")
