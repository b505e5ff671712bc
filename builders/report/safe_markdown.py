"""Model text as safe HTML: Markdown's most used marks, code coloured, formulas as MathML, all else escaped.

Nothing of the text reaches the page unescaped; what is not understood stays as it was written.
"""

from __future__ import annotations

import html
import re
from functools import lru_cache
from typing import Any
from xml.etree.ElementTree import Element, tostring

FENCE = re.compile(r"```[ \t]{0,8}([\w+-]{0,40})[^\n]{0,200}\n(.*?)(?:```|\Z)", re.DOTALL)  # bounded: see _SOME
LONGEST_FORMULA = 2_000  # characters; a longer one is shown as written
# Bounded, for a search that runs to the end of the text from each beginning of a formula is quadratic.
_SOME = rf".{{1,{LONGEST_FORMULA}}}?"
FORMULA = re.compile(
    rf"\$\$(?P<display>{_SOME})\$\$|\\\[(?P<bracket>{_SOME})\\\]|\\\((?P<paren>{_SOME})\\\)"
    r"|(?<![\\$\w])\$(?P<dollar>[^\s$](?:[^$\n]*[^\s$])?)\$(?![\w$])|(?P<boxed>\\boxed\{)",
    re.DOTALL,
)
INLINE_CODE = re.compile(r"`([^`\n]+)`")
EMPHASIS = re.compile(
    r"<code>[^<]*</code>|\*\*(?P<bold>[^*\n]+)\*\*|(?<![*\w])\*(?![\s*])(?P<italic>[^*\n]+?)(?<!\s)\*(?![*\w])"
)
HEADING = re.compile(r"^(#{1,4})[ \t]+(.+)$", re.MULTILINE)
FORMULA_ATTRIBUTES = frozenset(
    [
        "display",
        "mathvariant",
        "stretchy",
        "fence",
        "separator",
        "form",
        "lspace",
        "rspace",
        "minsize",
        "maxsize",
        "linethickness",
        "accent",
        "width",
        "height",
        "columnalign",
        "rowspacing",
        "columnspacing",
        "columnlines",
        "rowlines",
        "movablelimits",
        "displaystyle",
        "scriptlevel",
    ]
)
MARKS = re.compile(r"```\w*|\*\*|`|^#{1,4} ")
BRACE = re.compile(r"\\.|[{}]", re.DOTALL)
NEWLINES = re.compile(r"\n*")


def readable(text: str) -> str:
    """HTML of ``text``, safe to place in a page."""
    parts: list[str] = []
    position = 0
    for fence in FENCE.finditer(text):
        parts.append(_prose(text[position : fence.start()].rstrip("\n")))
        parts.append(coloured(fence.group(2), fence.group(1)))
        position = NEWLINES.match(text, fence.end()).end()  # type: ignore[union-attr]
    parts.append(_prose(text[position:]))
    return "".join(parts)


def title(text: str) -> str:
    """HTML of one line of ``text``: formulas are shown, marks of Markdown taken away."""
    return _prose(MARKS.sub("", text), one_line=True)


def coloured(code: str, language: str = "") -> str:
    """A ``<pre>`` of ``code`` with Pygments' classes; plain when the language is not known."""
    from pygments import highlight
    from pygments.formatters import HtmlFormatter

    shown = highlight(code.rstrip(), _lexer(language), HtmlFormatter(nowrap=True))
    return f'<pre class="code">{shown.rstrip()}</pre>'


@lru_cache(maxsize=256)
def _lexer(language: str) -> Any:
    from pygments.lexers import TextLexer, get_lexer_by_name
    from pygments.util import ClassNotFound

    try:
        return get_lexer_by_name(language or "text")
    except ClassNotFound:
        return TextLexer()


def _prose(text: str, *, one_line: bool = False) -> str:
    parts: list[str] = []
    position = 0
    closings = _closings(text)
    while match := FORMULA.search(text, position):
        kind = match.lastgroup or ""
        if kind == "boxed":
            end = closings.get(match.end())
            if end is None or end - match.end() > LONGEST_FORMULA:
                parts.append(_inline(text[position : match.end()]))
                position = match.end()
                continue
            source, stop = text[match.end() : end], end + 1
            shown = f'<span class="boxed">{formula(source)}</span>'
        else:
            source, stop = match.group(kind), match.end()
            shown = formula(source, display=kind in ("display", "bracket") and not one_line)
        parts += [_inline(text[position : match.start()]), shown]
        position = stop
    parts.append(_inline(text[position:]))
    return "".join(parts)


@lru_cache(maxsize=4096)
def formula(source: str, display: bool = False) -> str:
    """MathML of a LaTeX formula, or the escaped source when it cannot be read."""
    from latex2mathml.converter import convert_to_element

    if len(source) > LONGEST_FORMULA:
        return f"<code>{html.escape(source)}</code>"
    try:
        return _harmless(convert_to_element(_unboxed(source), display="block" if display else "inline"))
    except Exception:  # any text may stand between two dollar signs: shown as written
        return f"<code>{html.escape(source)}</code>"


def _harmless(root: Element) -> str:
    r"""MathML with only the attributes that shape a formula: ``\href`` and ``\style`` must not reach the page.

    Texts are escaped here and not by the library, whose own way of writing lets elements in ``\text`` through.
    """
    for element in root.iter():
        for name in [name for name in element.attrib if name not in FORMULA_ATTRIBUTES]:
            del element.attrib[name]
        element.text = html.unescape(element.text) if element.text else None  # its signs are references: &#x02212;
    return tostring(root, encoding="unicode")


def _unboxed(source: str) -> str:
    return source.replace("\\boxed", "\\mathbf")


def _closings(text: str) -> dict[int, int]:
    """Place after an opening brace -> place of the brace that closes it."""
    opened: list[int] = []
    found: dict[int, int] = {}
    for brace in BRACE.finditer(text):
        if brace[0] == "{":
            opened.append(brace.end())
        elif brace[0] == "}" and opened:
            found[opened.pop()] = brace.start()
    return found


def _inline(text: str) -> str:
    escaped = html.escape(text, quote=False)
    escaped = INLINE_CODE.sub(r"<code>\1</code>", escaped)
    escaped = EMPHASIS.sub(_emphasised, escaped)
    return HEADING.sub(r"<b>\2</b>", escaped)


def _emphasised(match: re.Match[str]) -> str:
    if match["bold"]:
        return f"<b>{match['bold']}</b>"
    return f"<i>{match['italic']}</i>" if match["italic"] else match[0]
