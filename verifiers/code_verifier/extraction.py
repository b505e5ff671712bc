"""Extracts the program from a chat answer: finds the code block and cleans it. ``verifier`` uses it."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Collection
from dataclasses import dataclass

NAMES = {
    "python": ("python", "python3", "py", "python2", "pycon"),
    "javascript": ("javascript", "js", "node", "nodejs", "mjs", "jsx", "typescript", "ts"),
    "bash": ("bash", "sh", "shell", "zsh", "console", "shellscript", "shell-session"),
    "sql": ("sql", "sqlite", "sqlite3", "mysql", "postgresql", "postgres"),
}
_BY_TAG = {tag: language for language, tags in NAMES.items() for tag in tags}

_FENCE = re.compile(r"^(?P<indent>[ \t]*)(?P<marks>`{3,}|~{3,})[ \t]*(?P<info>[^`\n]*)$")
_TAGS = re.compile(r"<(code|answer|solution|program)\b[^>]*>(.*?)</\1>", re.DOTALL | re.IGNORECASE)
_THINKING = re.compile(r"<(think|thinking|reasoning)>.*?</\1>", re.DOTALL | re.IGNORECASE)
_STOP = re.compile(r"<\|(?:im_end|endoftext|eot_id|end_of_text|end)\|>|</s>|\[/?INST\]")
_PROMPTS = {"python": re.compile(r"^(?:>>> ?|\.\.\. ?)"), "bash": re.compile(r"^\$ ")}

_SIGNS = {
    "python": r"^\s*(?:def |class |import |from \w[\w.]* import |print\(|if __name__|async def |@\w"
    r"|for .+:\s*$|while .+:\s*$)",
    "javascript": r"^\s*(?:function\b|const |let |var |class \w+ \{|console\.|module\.exports|import .+ from |export "
    r"|async function)",
    "bash": r"^\s*(?:#!/.*sh\b|\w+\(\)\s*\{|echo |if \[|for \w+ in |while (?:read|\[)|fi$|done$|local |set -)",
    "sql": r"^\s*(?:SELECT|WITH|INSERT|UPDATE|DELETE|CREATE|VALUES)\b",
}


@dataclass(frozen=True, slots=True)
class Block:
    """A part of an answer that is marked as code. ``language`` is "" if the answer does not state it."""

    text: str
    language: str
    closed: bool = True


def extract_program(answer: str, language: str, entry_point: str = "", named: Collection[str] = ()) -> str:
    """Return the program in ``answer``, or "" if there is none.

    If there are several code blocks, the last block that defines ``entry_point`` is chosen. If ``entry_point`` is "",
    the last block that defines a name from the tests (``named``) is chosen. If no block defines these names, the last
    block that looks like a program in ``language`` is chosen. Sample input and output do not look like a program.

    Earlier blocks that define names used in the chosen block are put before it. If there are no code blocks, the
    program starts at the first line of the answer that looks like code.
    """
    text = _STOP.sub("", _after_thinking(answer)).replace("\r\n", "\n")
    blocks = [block for block in fenced(text) if block.text.strip()]
    if not blocks:
        blocks = [Block(match[2].strip("\n"), "") for match in _TAGS.finditer(text) if match[2].strip()]
        blocks = [inner for block in blocks for inner in (fenced(block.text) or [block])]
    if not blocks:
        return _unfenced(text, language)
    fitting = [block for block in blocks if block.language in ("", language)] or (
        [] if any(block.language for block in blocks) else blocks
    )
    if not fitting:
        return ""
    chosen = _choose(fitting, language, {entry_point} if entry_point else set(named))
    return _clean(_with_helpers(fitting, chosen, language), language)


def fenced(text: str) -> list[Block]:
    """Return the fenced code blocks of ``text``, in order.

    A closing fence is at least as long as the opening fence. An unclosed block extends to the end of the text. An
    opening fence inside a block does not start another block.
    """
    blocks: list[Block] = []
    opened: re.Match[str] | None = None
    lines: list[str] = []
    for line in text.split("\n"):
        match = _FENCE.match(line)
        if opened is None:
            if match:
                opened, lines = match, []
            continue
        if match and not match["info"].strip() and match["marks"].startswith(opened["marks"]):
            blocks.append(_block(opened, lines, closed=True))
            opened = None
        else:
            lines.append(line)
    if opened is not None:
        blocks.append(_block(opened, lines, closed=False))
    return blocks


def language_of(text: str) -> str:
    """Return the programming language with the most typical line beginnings in ``text``, or "" if there are none."""
    votes = {
        name: len(re.findall(sign, text, re.MULTILINE | (re.IGNORECASE if name == "sql" else 0)))
        for name, sign in _SIGNS.items()
    }
    best = max(votes, key=lambda name: votes[name])
    return best if votes[best] else ""


def _block(opened: re.Match[str], lines: list[str], closed: bool) -> Block:
    info = opened["info"].strip().split()
    tag = re.sub(r"[{}.,:]", " ", info[0]).split() if info else []
    text = "\n".join(lines)
    if opened["indent"]:
        text = "\n".join(line.removeprefix(opened["indent"]) for line in lines)
    return Block(text, _BY_TAG.get(tag[0].lower(), "other" if tag else "") if tag else "", closed)


def _after_thinking(answer: str) -> str:
    answer = _THINKING.sub("", answer)
    for end in ("</think>", "</thinking>", "</reasoning>"):
        answer = answer.rpartition(end)[2]
    return answer


def _choose(blocks: list[Block], language: str, wanted: set[str]) -> int:
    """Return the index of the block that contains the program. ``wanted``: names that the program should define."""
    for place in reversed(range(len(blocks))):
        if wanted & _definitions(blocks[place].text, language):
            return place
    marked = [place for place, block in enumerate(blocks) if block.language == language]
    likely = [place for place in marked or range(len(blocks)) if _looks_like(blocks[place].text, language)]
    if language in ("python", "javascript"):
        whole = [place for place in likely if _is_whole(blocks[place].text, language)]
        likely = whole or likely
    return (likely or marked or [len(blocks) - 1])[-1]


def _is_whole(text: str, language: str) -> bool:
    """Return whether the block is a program, not a usage example: it reads input, or defines or imports something."""
    return bool(re.search(r"\b(?:input|stdin|def|class|import|require|function)\b|=>", text)) and not re.search(
        r"^\s*(?:assert |# ?(?:Example|Test)|// ?(?:Example|Test))", text.lstrip(), re.IGNORECASE
    )


def _with_helpers(blocks: list[Block], chosen: int, language: str) -> str:
    """Return the chosen block, preceded by the earlier blocks whose definitions it uses."""
    text = blocks[chosen].text
    if language not in ("python", "javascript", "bash"):
        return text
    used: list[str] = []
    for block in reversed(blocks[:chosen]):
        if block.language != language:
            continue
        names = _definitions(block.text, language)
        missing = {
            name for name in names if re.search(rf"\b{re.escape(name)}\b", text) and not _defines(text, name, language)
        }
        if missing and not (names & _definitions(text, language)):
            used.insert(0, block.text)
            text = block.text + "\n\n" + text
    return text


_DEFINITION = {
    "python": r"^(?:async )?(?:def|class) +(\w+)",
    "javascript": r"^(?:export )?(?:default )?(?:async )?(?:function\*?|class) +([\w$]+)"
    r"|^(?:export )?(?:const|let|var) +([\w$]+) *=",
    "bash": r"^(?:function +)?([\w-]+) *\(\)|^function +([\w-]+)",
    "sql": r"(?!)",
}


def _definitions(text: str, language: str) -> set[str]:
    matches = re.findall(_DEFINITION[language], text, re.MULTILINE)
    return {name for item in matches for name in ((item,) if isinstance(item, str) else item) if name}


def _defines(text: str, name: str, language: str) -> bool:
    if name in _definitions(text, language):
        return True
    if language == "python":
        return bool(
            re.search(
                rf"^\s+(?:async )?def +{re.escape(name)}\b|^{re.escape(name)} *(?::[^=\n]+)?=(?!=)", text, re.MULTILINE
            )
        )
    return bool(re.search(rf"\b{re.escape(name)} *[=:(]", text)) if language == "javascript" else False


def _looks_like(text: str, language: str) -> bool:
    guess = language_of(text)
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
        single = [piece for piece in inline if language_of(piece) == language]
        return single[-1] if single else ""
    last = len(lines)
    if first or _is_prose(lines[-1]):
        while last > first + 1 and (_is_prose(lines[last - 1]) or not lines[last - 1].strip()):
            last -= 1
    return _clean("\n".join(lines[first:last]), language)


def _is_code(line: str, language: str) -> bool:
    flags = re.IGNORECASE if language == "sql" else 0
    if re.match(_SIGNS[language], line, flags):
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
    """Return whether indented lines are the body of a function. The prompt then contains the ``def`` line."""
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
