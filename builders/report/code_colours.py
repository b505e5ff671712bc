"""Shows source code as safe HTML with coloured keywords, strings, comments and numbers.

``report.safe_markdown`` uses this module. One regular expression per family of languages divides a text into tokens.
The colours are less exact than those of Pygments. But Pygments needs 18 times the time, and its time grows with the
square of the length if a text repeats itself, as models often do.
"""

from __future__ import annotations

import html
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import lru_cache

# Each string and comment may be unclosed, and one alternative fits at each place, so the time is linear in the text.
_QUOTED = r'"(?:[^"\\\n]|\\[^\n])*"?'
_SINGLE = r"'(?:[^'\\\n]|\\[^\n])*'?"
_TEMPLATE = r"`(?:[^`\\]|\\.)*`?"
_TRIPLE = r'"""(?:[^"\\]|\\.|"(?!""))*(?:""")?|' + r"'''(?:[^'\\]|\\.|'(?!''))*(?:''')?"
_BLOCK = r"/\*(?:[^*]|\*(?!/))*(?:\*/)?"
_CHARACTER = r"'(?:&[a-z]+;|[^'\\\n]|\\[^\n]{1,9}?)'"  # the text is escaped HTML

_FLOW = "break case catch continue default do else finally for if return switch throw try while"
_C = (
    f"{_FLOW} auto bool char class const constexpr delete double enum extern false float goto inline int long "
    "namespace new nullptr operator override private protected public short signed sizeof static struct "
    "template this true typedef typename union unsigned using virtual void volatile"
)
_JAVA = (
    f"{_FLOW} abstract boolean byte char class double extends false final float implements import instanceof int "
    "interface long new null package private protected public record static super synchronized this "
    "throws true var void"
)
_JAVASCRIPT = (
    f"{_FLOW} as async await class const delete export extends false from function import in instanceof interface "
    "let new null of static super this true type typeof undefined var void yield"
)
_PYTHON = (
    "and as assert async await break case class continue def del elif else except False finally for from global "
    "if import in is lambda match None nonlocal not or pass raise return True try while with yield"
)
_RUST = (
    "as async await break const continue crate dyn else enum extern false fn for if impl in let loop match mod "
    "move mut pub ref return Self self static struct super trait true type unsafe use where while"
)
_GO = (
    f"{_FLOW} chan const defer fallthrough false func go import interface map nil package range select struct true "
    "type var"
)
_BASH = "case do done elif else esac export fi for function if in local return select set shift then until while"
_SQL = (
    "all alter and as asc avg begin between by case count create cross delete desc distinct drop else end exists "
    "from full group having if in index inner insert into is join left like limit max min not null offset on or "
    "order outer over partition primary references right row rows select set sum table then union unique update "
    "using values view when where with"
)


@dataclass(frozen=True, slots=True)
class Language:
    """The tokens of a family of languages: the patterns of comments and strings, and the keywords."""

    comment: str
    string: str
    keywords: frozenset[str]

    @classmethod
    def of(cls, comment: str, string: str, keywords: str) -> Language:
        """Build a language from patterns of comments and strings, and from ``keywords`` with spaces between them."""
        return cls(comment, string, frozenset(keywords.split()))


_SLASH, _HASH, _BOTH_QUOTES = rf"//[^\n]*|{_BLOCK}", r"\#[^\n]*", f"{_QUOTED}|{_SINGLE}"
_LANGUAGES: Mapping[str, Language] = {
    "python py python3 pycon": Language.of(_HASH, f"{_TRIPLE}|{_BOTH_QUOTES}", _PYTHON),
    "javascript js jsx typescript ts tsx node": Language.of(_SLASH, f"{_BOTH_QUOTES}|{_TEMPLATE}", _JAVASCRIPT),
    "c cpp c++ cc h hpp cuda": Language.of(_SLASH, f"{_QUOTED}|{_CHARACTER}", _C),
    "java kotlin scala csharp cs c#": Language.of(_SLASH, f"{_QUOTED}|{_CHARACTER}", _JAVA),
    "rust rs": Language.of(_SLASH, f"{_QUOTED}|{_CHARACTER}", _RUST),
    "go golang": Language.of(_SLASH, f"{_QUOTED}|{_CHARACTER}|{_TEMPLATE}", _GO),
    "bash sh shell zsh console": Language.of(r"(?<![\w$])\#[^\n]*", _BOTH_QUOTES, _BASH),
    "sql sqlite postgresql mysql": Language.of(rf"--[^\n]*|{_BLOCK}", _BOTH_QUOTES, f"{_SQL} {_SQL.upper()}"),
    "json json5 jsonl yaml yml toml ini": Language.of(r"(?<!\S)\#[^\n]*", _QUOTED, "true false null"),
}
_BY_NAME = {name: language for names, language in _LANGUAGES.items() for name in names.split()}


def coloured(code: str, language: str = "") -> str:
    """Return ``code`` as a ``<pre>`` with coloured tokens; without colours if the language is unknown."""
    escaped = html.escape(code.strip("\n").rstrip(), quote=False)
    known = _BY_NAME.get(language.lower())
    shown = _tokens(known).sub(_marker(known), escaped) if known else escaped
    return f'<pre class="code">{shown}</pre>'


@lru_cache
def _tokens(language: Language) -> re.Pattern[str]:
    """Return the pattern of a token. It has one named group per kind of token.

    The group's name is the CSS class of the token. The group ``k`` matches every word; the caller selects the keywords.
    """
    comment, string = language.comment, language.string
    return re.compile(rf"(?P<c>{comment})|(?P<s>{string})|(?P<k>[^\W\d]\w*+)|(?P<n>\d[\w.]*+)", re.DOTALL)


@lru_cache
def _marker(language: Language) -> Callable[[re.Match[str]], str]:
    keywords = language.keywords

    def marked(match: re.Match[str]) -> str:
        kind, text = match.lastgroup, match[0]
        return text if kind == "k" and text not in keywords else f'<span class="{kind}">{text}</span>'

    return marked
