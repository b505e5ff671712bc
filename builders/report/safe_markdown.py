"""Converts text that a model wrote to safe HTML: common Markdown, highlighted code, and formulas as MathML.

``report.query_html`` uses this module. All text is escaped, so that a model cannot add its own HTML to the page.
Unknown markup is shown unchanged.
"""

from __future__ import annotations

import html
import re
from functools import lru_cache
from xml.etree.ElementTree import Element, tostring

from bestofn.builders.report.code_colours import coloured

FENCE = re.compile(r"```[ \t]{0,8}([\w+-]{0,40})[^\n]{0,200}\n(.*?)(?:```|\Z)", re.DOTALL)  # limited lengths: see below
LONGEST_FORMULA = 2_000  # characters; a longer formula is not converted
# Without a limit, the time of the search would be quadratic in the length of a text with many unclosed formulas.
_FORMULA_TEXT = rf".{{1,{LONGEST_FORMULA}}}?"
FORMULA = re.compile(
    rf"\$\$(?P<display>{_FORMULA_TEXT})\$\$|\\\[(?P<bracket>{_FORMULA_TEXT})\\\]|\\\((?P<paren>{_FORMULA_TEXT})\\\)"
    r"|(?<![\\$\w])\$(?P<dollar>[^\s$](?:[^$\n]*[^\s$])?)\$(?![\w$])|(?P<boxed>\\boxed\{)",
    re.DOTALL,
)
FORMULA_START = re.compile(r"[$\\]")
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
QUOTED = re.compile(r"(?<!\w)(?:'((?:[^'\\]|\\.){1,500})'|\"((?:[^\"\\]|\\.){1,500})\")(?!\w)")
LATEX = re.compile(r"\\[A-Za-z]{2,}|[\^_]\{")
BRACE = re.compile(r"\\.|[{}]", re.DOTALL)


def readable(text: str) -> str:
    """Convert ``text`` to HTML that is safe to insert into a page."""
    parts: list[str] = []
    position = 0
    for fence in FENCE.finditer(text):
        parts.append(_prose(text[position : fence.start()].rstrip("\n")))
        parts.append(coloured(fence.group(2), fence.group(1)))
        position = _after_newlines(text, fence.end())
    parts.append(_prose(text[position:]))
    return "".join(parts)


def title(text: str) -> str:
    """Convert a one-line ``text`` to safe HTML: formulas are converted, and Markdown marks are removed."""
    return _prose(MARKS.sub("", text), one_line=True)


def explained(text: str) -> str:
    r"""Convert an explanation to safe HTML. A quoted answer in LaTeX, as in ``'6\\text{ m}'``, becomes a formula."""
    if "\\" not in text and "{" not in text:  # no LaTeX
        return html.escape(text)
    parts: list[str] = []
    position = 0
    for quoted in QUOTED.finditer(text):
        source = quoted[0][1:-1].replace("\\\\", "\\")  # explanations quote answers as Python literals
        if LATEX.search(source):
            parts += [html.escape(text[position : quoted.start()]), formula(source.strip("$"))]
            position = quoted.end()
    return "".join([*parts, html.escape(text[position:])])


def _after_newlines(text: str, position: int) -> int:
    while text.startswith("\n", position):
        position += 1
    return position


def _prose(text: str, *, one_line: bool = False) -> str:
    """Convert text that has no code blocks to HTML. With ``one_line``, display formulas become inline formulas."""
    if "$" not in text and "\\" not in text:  # no formula
        return _inline(text)
    parts: list[str] = []
    position = 0
    closings = _closing_braces(text) if "\\boxed{" in text else {}
    while match := _next_formula(text, position):
        kind = match.lastgroup or ""
        if kind != "boxed":
            display = kind in ("display", "bracket") and not one_line
            shown, stop = formula(match.group(kind), display=display), match.end()
        elif (end := closings.get(match.end())) is not None and end - match.end() <= LONGEST_FORMULA:
            shown, stop = f'<span class="boxed">{formula(text[match.end() : end])}</span>', end + 1
        else:  # the box has no closing brace or is too long: its text is not converted
            parts.append(_inline(text[position : match.end()]))
            position = match.end()
            continue
        parts += [_inline(text[position : match.start()]), shown]
        position = stop
    parts.append(_inline(text[position:]))
    return "".join(parts)


@lru_cache(maxsize=4096)
def formula(source: str, display: bool = False) -> str:
    """Convert a LaTeX formula to MathML; return the escaped source if it is too long or cannot be converted."""
    from latex2mathml.converter import convert_to_element

    if len(source) > LONGEST_FORMULA:
        return f"<code>{html.escape(source)}</code>"
    try:
        return _harmless(convert_to_element(_unboxed(source), display="block" if display else "inline"))
    except Exception:  # text between two dollar signs may not be a formula
        return f"<code>{html.escape(source)}</code>"


def _harmless(root: Element) -> str:
    r"""Return MathML with only the attributes in ``FORMULA_ATTRIBUTES``, so that ``\href`` and ``\style`` are removed.

    The texts are escaped here, because the library's serializer does not escape elements in ``\text``.
    """
    for element in root.iter():
        for name in [name for name in element.attrib if name not in FORMULA_ATTRIBUTES]:
            del element.attrib[name]
        # The library writes symbols as character references, for example &#x02212;.
        element.text = html.unescape(element.text) if element.text else None
    return tostring(root, encoding="unicode")


def _unboxed(source: str) -> str:
    return source.replace("\\boxed", "\\mathbf")


def _next_formula(text: str, position: int) -> re.Match[str] | None:
    """Return the next formula in ``text`` from ``position`` on; None if there is none.

    A search for the first character of a formula comes first, because it is faster than ``FORMULA.search``.
    """
    starts = (FORMULA.match(text, start.start()) for start in FORMULA_START.finditer(text, position))
    return next(filter(None, starts), None)


def _closing_braces(text: str) -> dict[int, int]:
    """Return a dict from the position after each opening brace to the position of its closing brace."""
    opened: list[int] = []
    closings: dict[int, int] = {}
    for brace in BRACE.finditer(text):
        if brace[0] == "{":
            opened.append(brace.end())
        elif brace[0] == "}" and opened:
            closings[opened.pop()] = brace.start()
    return closings


def _inline(text: str) -> str:
    escaped = html.escape(text, quote=False)
    if "`" in escaped:
        escaped = INLINE_CODE.sub(r"<code>\1</code>", escaped)
    if "*" in escaped:
        escaped = EMPHASIS.sub(_emphasised, escaped)
    return HEADING.sub(r"<b>\2</b>", escaped) if "#" in escaped else escaped


def _emphasised(match: re.Match[str]) -> str:
    if match["bold"]:
        return f"<b>{match['bold']}</b>"
    return f"<i>{match['italic']}</i>" if match["italic"] else match[0]
