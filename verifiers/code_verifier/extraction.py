"""Extracts the program from a chat answer: chooses the code block and cleans it. ``verifier`` uses this module.

``fences`` finds the blocks, ``helpers`` adds the definitions of other blocks.
"""

from __future__ import annotations

import re
import textwrap
from collections.abc import Collection
from dataclasses import dataclass, replace

from bestofn.sandbox.engines import engine_of
from bestofn.verifiers.code_verifier.compiled_languages import SIGNS
from bestofn.verifiers.code_verifier.fences import Block, code_blocks, visible_text
from bestofn.verifiers.code_verifier.helpers import definitions, with_helpers
from bestofn.verifiers.code_verifier.javascript import as_script, is_typescript, without_types
from bestofn.verifiers.code_verifier.syntax import identifiers

_PROMPTS = {"python": re.compile(r"^(?:>>> ?|\.\.\. ?)"), "bash": re.compile(r"^\$ ")}

_MAGIC = re.compile(
    r"^[!%]{1,2}(?:pip|conda|matplotlib|time|timeit|load_ext|capture)\b.*\n?", re.MULTILINE
)  # of notebooks

_SIGNS = {
    "python": r"^\s*(?:def |class |import |from \w[\w.]* import |print\(|if __name__|async def |@\w"
    r"|for .+:\s*$|while .+:\s*$)",
    "javascript": r"^\s*(?:function\b|const |let |var |class \w+ \{|console\.|module\.exports|import .+ from |export "
    r"|async function)",
    "bash": r"^\s*(?:#!/.*sh\b|\w+\(\)\s*\{|echo |if \[|for \w+ in |while (?:read|\[)|fi$|done$|local |set -)",
    "sql": r"^\s*(?:SELECT|WITH|INSERT|UPDATE|DELETE|CREATE|VALUES)\b",
}
_ALL_SIGNS = _SIGNS | SIGNS


@dataclass(frozen=True, slots=True)
class Extraction:
    """The program in an answer. ``source`` is "" if there is none.

    ``complete`` is False if the answer may end inside the program. ``typed`` is True if the program is TypeScript.
    ``guessed`` is True in two cases:

    - The program was not marked as code, and text around it was left out.
    - The program may be a bad example that follows the real program.
    """

    source: str = ""
    complete: bool = True
    guessed: bool = False
    typed: bool = False


def extract_program(answer: str, language: str, entry_point: str = "", named: Collection[str] = ()) -> str:
    """Return the program in ``answer``, or "" if there is none. ``extract`` describes the rules."""
    return extract(answer, language, entry_point, named).source


def extract(answer: str, language: str, entry_point: str = "", named: Collection[str] = ()) -> Extraction:
    """Find the program in ``answer``.

    If there are several code blocks, the last block that defines a name of ``entry_point`` is chosen. If
    ``entry_point`` is "", the last block that defines a name from the tests (``named``) is chosen. If no block defines
    these names, the last block that looks like a program in ``language`` is chosen. Sample input and output, and
    commands that start a program, do not look like a program.

    Imports and definitions of other blocks are put before the chosen block if the chosen block uses their names. If
    there are no code blocks, the program starts at the first line that looks like code.
    """
    asked = language
    language = "sql" if engine_of(language) else "javascript" if language == "typescript" else language
    text = visible_text(answer)
    blocks = code_blocks(text)
    if not blocks:
        source = _unfenced(text, language)
        guessed = len(source.split()) < len(text.split())
        return _finished(Extraction(source, complete=False, guessed=guessed), asked, entry_point)
    fitting = [block for block in blocks if block.language in ("", language)] or (
        [] if any(block.language for block in blocks) else blocks
    )
    fitting = [block for block in fitting if not _only_starts_programs(block.text)] or fitting
    if not fitting:
        return Extraction()
    chosen = _choose(fitting, language, identifiers(entry_point) or set(named))
    source = _clean(with_helpers(fitting, chosen, language), language)
    doubtful = _is_counterexample(fitting, chosen, language)
    found = Extraction(source, fitting[chosen].closed, guessed=doubtful)
    return _finished(found, asked, entry_point, fitting[chosen].tag)


def _finished(found: Extraction, language: str, entry_point: str, tag: str = "") -> Extraction:
    """Return ``found`` in the form that the sandbox runs: JavaScript becomes a script without type annotations."""
    if language != "javascript" or not found.source:
        return found
    typed = is_typescript(found.source, tag)
    source = without_types(found.source) if typed else found.source
    return replace(found, source=as_script(source, entry_point), typed=typed)


_STARTS = re.compile(
    r"(?:\$ |> )?(?:sudo )?(?:chmod\b|\./\S|(?:bash|sh|source|\.|python3?|node) \S+\.(?:sh|py|m?js)\b)"
)


_FED = re.compile(
    r"^((?:\$ |> )?)(?:(?:echo|printf)(?: -\w+)* +(?:\$?'[^']*'|\"[^\"]*\"|[\w ]+)|cat \S+) *\|"
    r" *(?=\./\S|(?:bash|sh|python3?|node) \S+\.(?:sh|py|m?js)\b)",
    re.MULTILINE,
)
"""The part of a line that feeds a program, such as ``echo "3\\n1 2 3" |`` before ``./sum.sh``."""


def _only_starts_programs(text: str) -> bool:
    """Return whether every command of ``text`` makes a file executable or runs it: ``chmod +x s.sh; ./s.sh``.

    In a block with shell prompts (``$ ./s.sh``), lines without a prompt are output and are ignored.
    """
    text = _FED.sub(r"\1", text)
    if re.search(r"^\s*\$ ", text, re.MULTILINE):
        text = "\n".join(line for line in text.split("\n") if line.strip().startswith("$ "))
    lines = [line.strip() for line in text.split("\n") if line.strip() and not line.strip().startswith("#")]
    return bool(lines) and all(_STARTS.match(line) for line in lines)


def language_of(text: str, also: str = "") -> str:
    """Return the programming language with the most typical line beginnings in ``text``, or "" if there are none.

    Only the compiled language ``also`` is considered, because compiled languages have many line beginnings in common.
    """
    signs = {also: SIGNS[also], **_SIGNS} if also in SIGNS else _SIGNS
    votes = {
        name: len(re.findall(sign, text, re.MULTILINE | (re.IGNORECASE if name == "sql" else 0)))
        for name, sign in signs.items()
    }
    best = max(votes, key=lambda name: votes[name])
    return best if votes[best] else ""


def _choose(blocks: list[Block], language: str, wanted: set[str]) -> int:
    """Return the index of the block that contains the program. ``wanted``: names that the program should define."""
    for names in (wanted, {"Solution"}):  # a method is defined by the class ``Solution``, as on LeetCode
        for place in reversed(range(len(blocks))):
            if names & definitions(blocks[place].text, language):
                return place
    marked = [place for place, block in enumerate(blocks) if block.language == language]
    likely = [place for place in marked or range(len(blocks)) if _looks_like(blocks[place].text, language)]
    if language in ("python", "javascript"):
        whole = [place for place in likely if _is_whole(blocks[place].text, language)]
        likely = [place for place in whole if _READS_INPUT.search(blocks[place].text)] or whole or likely
    return (likely or marked or [len(blocks) - 1])[-1]


_REJECTED = re.compile(
    r"\b(?:mistakes?|errors?|pitfalls?|wrong(?:ly)?|incorrect(?:ly)?|buggy|broken|bad|naive|slow\w*|brute[- ]force|"
    r"inefficient|not|don't|avoid|never|instead of|originals?|originally|time out|would fail|fails|old|previous(?:ly)?|"
    r"alternativ\w+|another (?:way|approach|version)|comparison|reference|optional\w*)\b",
    re.IGNORECASE,
)
"""Matches a line that may introduce a bad example, or another version of the program."""


def _is_counterexample(blocks: list[Block], chosen: int, language: str) -> bool:
    """Return whether the chosen block may be a bad example.

    Two conditions must hold. First, the text before the chosen block contains a word such as "wrong". Second, an
    earlier block in the same language defines a name that the chosen block defines too. If the chosen block defines no
    names, any earlier block in its language is enough.
    """
    if not _REJECTED.search(blocks[chosen].before):
        return False
    names = definitions(blocks[chosen].text, language)
    earlier = [block for block in blocks[:chosen] if block.language == blocks[chosen].language]
    return any(not names or names & definitions(block.text, language) for block in earlier)


_READS_INPUT = re.compile(r"\binput\(|\bstdin\b|\bopen\(0\)|\breadline\b|readFileSync\((?:0|['\"]/dev/stdin)")


def _is_whole(text: str, language: str) -> bool:
    """Return whether ``text`` is a program and not a usage example: it reads input, defines a name or has an import."""
    return bool(re.search(r"\b(?:input|stdin|def|class|import|require|function)\b|=>", text)) and not re.search(
        r"^\s*(?:assert |# ?(?:Example|Test)|// ?(?:Example|Test))", text.lstrip(), re.IGNORECASE
    )


def _looks_like(text: str, language: str) -> bool:
    guess = language_of(text, language)
    return guess in ("", language) and (guess == language or len(text.strip().splitlines()) > 1)


def _unfenced(text: str, language: str) -> str:
    """Return the program of an answer that has no code blocks: from the first to the last line of code."""
    stripped = text.strip("\n")
    if not stripped.strip():
        return ""
    if stripped[0] in " \t":  # the text completes a function in the prompt, so keep its indentation
        return _clean(stripped, language)
    inline = re.findall(r"(?<!`)`([^`\n]+)`(?!`)", stripped)
    lines = stripped.split("\n")
    first = next((place for place, line in enumerate(lines) if _is_code(line, language)), None)
    if first is None:
        single = [piece for piece in inline if language_of(piece, language) == language]
        return single[-1] if single else ""
    last = len(lines)
    if first or _is_prose(lines[-1]):
        while last > first + 1 and (_is_prose(lines[last - 1]) or not lines[last - 1].strip()):
            last -= 1
    return _clean("\n".join(lines[first:last]), language)


def _is_code(line: str, language: str) -> bool:
    flags = re.IGNORECASE if language == "sql" else 0
    if re.match(_ALL_SIGNS[language], line, flags):
        return language != "sql" or not _is_prose(line)
    return bool(re.match(r"^(?:#!|#|//|/\*|--|\"\"\"|[A-Za-z_$][\w$.\[\], ]* ?[-+*/]?= ?\S)", line)) and not _is_prose(
        line
    )


def _is_prose(line: str) -> bool:
    words = line.split()
    return (
        len(words) >= 4
        and bool(re.match(r"^[A-Z*\-\d]", line))
        and line.rstrip()[-1:] in ".:!?"
        and not re.search(r"[(){}\[\]=;]{2,}|:=|=>|==", line)
    )


def _is_body(text: str) -> bool:
    """Return whether the lines of ``text`` are a function body, which continues the ``def`` line of a prompt."""
    lines = textwrap.dedent(text).split("\n")
    starts = next((line for line in lines if line.strip()), "")
    if not starts.startswith(("def ", "class ", "import ", "from ", "@", "async ")):
        return True
    if any(re.match(r"(?:return|yield)\b", line) for line in lines):
        return True
    returns = any(re.match(r"\s*(?:return|yield)\b", line) for line in lines)
    return returns and not any(line.startswith(("def ", "class ", "async def ")) for line in lines)


def _clean(text: str, language: str) -> str:
    """Return ``text`` after removing interactive prompts (``>>>``, ``$``) and special space characters."""
    if language == "python":
        text = _MAGIC.sub("", text)
    text = text.replace("\u00a0", " ").replace("\u200b", "").replace("\ufeff", "")
    lines = text.split("\n")
    prompt = _PROMPTS.get(language)
    if prompt and next((line for line in lines if line.strip()), "").startswith((">>> ", "$ ")):
        lines = [prompt.sub("", line) for line in lines if prompt.match(line)]
    text = "\n".join(lines)
    indented = all(not line.strip() or line[:1] in (" ", "\t") for line in lines)
    if language == "python" and indented and not _is_body(text):
        text = textwrap.dedent(text)
    return text.strip("\n") + "\n" if text.strip() else ""
