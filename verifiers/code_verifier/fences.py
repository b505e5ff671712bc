"""Finds the code blocks of a chat answer. ``extraction`` chooses the program among them."""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator
from dataclasses import dataclass

from bestofn.sandbox.engines import engine_of
from bestofn.verifiers.code_verifier.compiled_languages import TAGS

NAMES = {
    "python": ("python", "python3", "py", "py3", "python2", "pycon", "ipython", "ipython3", "pypy", "pypy3"),
    "javascript": ("javascript", "js", "node", "nodejs", "mjs", "jsx", "typescript", "ts", "tsx"),
    "bash": ("bash", "sh", "shell", "zsh", "console", "shellscript", "shell-session"),
    "sql": ("sql", "sqlite", "sqlite3", "mysql", "postgresql", "postgres"),
    **TAGS,
}
_BY_TAG = {tag: language for language, tags in NAMES.items() for tag in tags}

# A model may write a line of 100,000 characters. So no pattern starts with ``.*``, and no run is tried in parts.
_FENCE = re.compile(r"^(?P<indent>[ \t]*+)(?P<marks>`{3,}+|~{3,}+)[ \t]*+(?P<info>[^`\n]*+)$")
_TAG = "|".join(sorted(map(re.escape, _BY_TAG), key=len, reverse=True))
_INLINE_FENCE = re.compile(rf"(?<!`)(?P<marks>`{{3,}}+)[ \t]*+(?P<info>(?:{_TAG})\b[^`\n]*+)$", re.IGNORECASE)
_ONE_LINE = re.compile(
    rf"(?<!`)(?P<marks>`{{3,}}+)(?P<info>(?:{_TAG})\b)[ \t]++(?P<code>[^`\n]++)(?P=marks)", re.IGNORECASE
)
_QUOTES = re.compile(r"\"{3}|'{3}")
_CLOSING_END = re.compile(r"^(?P<code>.*[^`\s])(?P<marks>`{3,})[ \t]*$")
_CODE_AFTER_TAG = re.compile(
    r"[(=:]|^(?:import|from|print|return|def|class|select|echo|const|let|var)\b", re.IGNORECASE
)
_TAGS = re.compile(r"<(code|answer|solution|program)\b[^<>]*+>", re.IGNORECASE)
_THINKING = re.compile(r"<(think|thinking|reasoning)>", re.IGNORECASE)
_MOST_OPENINGS = 20  # thinking without an end mark: code blocks are searched before so many start marks
_OPEN_THINKING = re.compile(r"^[ \t]*<(?:think|thinking|reasoning)>", re.MULTILINE | re.IGNORECASE)
_STOP = re.compile(r"<\|(?:im_end|endoftext|eot_id|end_of_text|end)\|>|</s>|\[/?INST\]")


@dataclass(frozen=True, slots=True)
class Block:
    """A part of an answer that is marked as code.

    ``language`` is "" if the answer does not state it, and "other" if it is not supported. ``tag`` is the language as
    the answer writes it.
    """

    text: str
    language: str
    closed: bool = True
    tag: str = ""
    before: str = ""


def visible_text(answer: str) -> str:
    """Return ``answer`` without its thinking and without markers of a chat template.

    Thinking without an end marker is removed up to the end of the text, because a draft in it is not the answer.
    """
    text, end = "", 0
    for begin, _, end_of_tag in _elements(answer, _THINKING):
        text, end = text + answer[end:begin], end_of_tag
    text += answer[end:]
    for end in ("</think>", "</thinking>", "</reasoning>"):
        text = text.rpartition(end)[2]
    for opened in itertools.islice(_OPEN_THINKING.finditer(text), _MOST_OPENINGS):
        before = text[: opened.start()]
        if all(block.closed for block in fenced(before)):  # inside a code block the tag is part of a program
            text = before
            break
    return _STOP.sub("", text).replace("\r\n", "\n")


def code_blocks(text: str) -> list[Block]:
    """Return the code blocks of ``text`` that are not empty: the fenced blocks, or else the blocks in ``<code>`` tags.

    If a block is not code, such as a Markdown page, the code blocks inside it are returned instead.
    """
    blocks = [block for block in fenced(text) if block.text.strip()]
    if blocks:
        return [inner for block in blocks for inner in (_inside(block) or [block])]
    contents = [content for _, content, _ in _elements(text, _TAGS)]
    tagged = [Block(content.strip("\n"), "") for content in contents if content.strip()]
    return [inner for block in tagged for inner in (fenced(block.text) or [block])]


def _elements(text: str, opening: re.Pattern[str]) -> Iterator[tuple[int, str, int]]:
    """Yield (begin, content, end) of each element such as ``<code>…</code>``. Takes linear time."""
    at, endless = 0, set[str]()
    while match := opening.search(text, at):
        name = match[1].lower()
        close = None if name in endless else re.compile(f"</{name}>", re.IGNORECASE).search(text, match.end())
        if close is None:
            endless.add(name)
            at = match.end()
            continue
        yield match.start(), text[match.end() : close.start()], close.end()
        at = close.end()


def _inside(block: Block) -> list[Block]:
    nested = fenced(block.text) if block.language in ("", "other") else []
    return [inner for inner in nested if inner.text.strip()]


def fenced(text: str) -> list[Block]:
    """Return the fenced code blocks of ``text``, in order.

    A closing fence is at least as long as the opening fence. An unclosed block extends to the end of the text. An
    opening fence inside a block does not start another block. Other text may precede an opening fence on its line if
    the fence has the name of a language. Code may precede a closing fence on its line.
    """
    blocks: list[Block] = []
    opened: re.Match[str] | None = None
    lines: list[str] = []
    before, quotes = "", 0
    every = text.split("\n")
    last_quotes = max((at for at, line in enumerate(every) if _QUOTES.search(line)), default=-1)
    for at, line in enumerate(every):
        if opened is None:
            whole = _ONE_LINE.search(line)
            if whole:
                tag = whole["info"].lower()
                blocks.append(Block(whole["code"].strip(), _language(tag), tag=tag, before=before))
                continue
            opened = _FENCE.match(line) or _INLINE_FENCE.search(line)
            lines, quotes = [], 0
            before = line if opened is None and line.strip() else before
            continue
        rest = _closed_by(line, opened["marks"])
        if rest is None or (
            quotes % 2 and at < last_quotes and line[:1].isspace()
        ):  # a fence in a docstring is indented
            lines.append(line)
            quotes += len(_QUOTES.findall(line))
            continue
        blocks.append(_block(opened, [*lines, rest] if rest else lines, True, before))
        opened = None
    if opened is not None:
        blocks.append(_block(opened, lines, False, before))
    return blocks


def _closed_by(line: str, marks: str) -> str | None:
    """Return the code before the closing fence in ``line``; None if the line does not close a block."""
    match = _FENCE.match(line)
    if match:
        words = match["info"].split()
        closes = not words or (len(words) > 2 and words[0].lower() not in _BY_TAG)  # "``` This function returns"
        return "" if closes and match["marks"].startswith(marks) else None
    match = _CLOSING_END.match(line)
    return match["code"] if match and match["marks"].startswith(marks) and "`" not in match["code"] else None


def _block(opened: re.Match[str], lines: list[str], closed: bool, before: str) -> Block:
    info = opened["info"].strip().split(None, 1)
    tag = (re.sub(r"[{}.,:]", " ", info[0]).split() or [""])[0].lower() if info else ""
    indent = opened.groupdict().get("indent") or ""
    if len(info) == 2 and tag in _BY_TAG and _is_code_after_tag(info[1]):
        lines = [indent + info[1], *lines]
    text = "\n".join(line.removeprefix(indent) for line in lines)
    return Block(text, _language(tag), closed, tag, before)


def _is_code_after_tag(text: str) -> bool:
    """Return whether the text after the name of a language is code, not attributes such as ``title="main.py"``."""
    return bool(_CODE_AFTER_TAG.search(text)) and not re.match(r"[\w-]+=[\"']|\{|\w+\.\w+$|:", text)


def _language(tag: str) -> str:
    name = tag.lower()
    return _BY_TAG.get(name) or ("" if not tag else "sql" if engine_of(name) else "other")
