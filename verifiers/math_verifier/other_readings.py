r"""Other readings of an answer that differs from the reference.

If another reading equals the reference, the answer is undecided.

For example, ``7!`` may be an exclamation, ``2.000`` may be 2000, ``1,2`` may be 1.2, and 2 dozen are 24. ``\log`` may
have the base 10, and the ``-`` in ``Answer - 7`` may be a dash.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from bestofn.verifiers.math_verifier.nodes import Node, Text
from bestofn.verifiers.math_verifier.reading import read
from bestofn.verifiers.math_verifier.sentences import stated

SHORT = 20  # an answer of at most so many characters is not a sentence with several values
LONGEST = 400
_PREFIX = re.compile(r"^0[bxo](?=[0-9A-Fa-f])")
_DOZENS = re.compile(r"(?<![\d.,])(\d{1,6})(?:\s|~|\\[ ,;]|\\(?:text|mathrm|mbox)\s*\{|\{)*\s*dozens?\b", re.IGNORECASE)
_DASH = re.compile(r"(?<=[A-Za-z:*])\s+[-–—]\s+(?=\\?\$?\d)")
_GROUPED = re.compile(r"(?<![\d.,])(\d{1,3}(?:\.\d{3})+)(?!\d|\.\d)")
_DECIMAL_COMMA = re.compile(r"(?<=\d),(?=\d)")
_IMAGINARY = re.compile(r"j\b")
_LOG = re.compile(r"\\?\blog(?:_\{?10\}?|(?!_))(?![A-Za-z])")


def other_readings(text: str) -> Iterator[Node]:
    """Yield the tree of each other reading of the answer ``text``."""
    for other in _spellings(text):
        node = read(other)
        value = stated(other) if isinstance(node, Text) else node
        if value is not None:
            yield value


def _spellings(text: str) -> list[str]:
    others: list[str] = []
    if len(text) <= LONGEST:
        others = [_DOZENS.sub(lambda match: str(12 * int(match[1])), text)] if "doz" in text.lower() else []
        others += [_DASH.sub(" ", text)]
        others += [_LOG.sub(base, text) for base in (r"\\log_{10}", r"\\ln ")] if "log" in text else []
        others += [_GROUPED.sub(lambda match: match[1].replace(".", ""), text)] if "." in text else []
        others += [_DECIMAL_COMMA.sub(".", text)] if "," in text else []
    if len(text) <= SHORT:
        bare = text.strip(" $.")
        others += [bare.rstrip("!"), _IMAGINARY.sub("i", bare), bare.replace(":", "-"), _PREFIX.sub("", bare)]
    return [other for other in dict.fromkeys(others) if other and other not in (text, text.strip(" $."))]
