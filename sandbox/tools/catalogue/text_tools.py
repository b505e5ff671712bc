"""Mock tools for texts: translation, summary, sentiment, comparison, hashing and encoding."""

from __future__ import annotations

import base64
import binascii
import difflib
import hashlib
import re
import uuid
from collections import Counter
from typing import Literal

from bestofn.sandbox.tools.mock_tool import Result, ToolFailure, tool
from bestofn.sandbox.tools.places import plain
from bestofn.sandbox.tools.world import World

MAX_CHARS = 50_000
_LANGUAGES = {"en": "English", "es": "Spanish", "fr": "French", "de": "German", "it": "Italian", "no": "Norwegian"}
# one row per word: en, es, fr, de, it, no
_LEXICON = (
    ("hello", "hola", "bonjour", "hallo", "ciao", "hallo"),
    ("good", "bueno", "bon", "gut", "buono", "god"),
    ("morning", "mañana", "matin", "Morgen", "mattina", "morgen"),
    ("night", "noche", "nuit", "Nacht", "notte", "natt"),
    ("thank you", "gracias", "merci", "danke", "grazie", "takk"),
    ("please", "por favor", "s'il vous plaît", "bitte", "per favore", "vær så snill"),
    ("water", "agua", "eau", "Wasser", "acqua", "vann"),
    ("bread", "pan", "pain", "Brot", "pane", "brød"),
    ("house", "casa", "maison", "Haus", "casa", "hus"),
    ("friend", "amigo", "ami", "Freund", "amico", "venn"),
    ("the", "el", "le", "das", "il", "den"),
    ("is", "es", "est", "ist", "è", "er"),
    ("where", "dónde", "où", "wo", "dove", "hvor"),
    ("station", "estación", "gare", "Bahnhof", "stazione", "stasjon"),
    ("yes", "sí", "oui", "ja", "sì", "ja"),
    ("no", "no", "non", "nein", "no", "nei"),
    ("world", "mundo", "monde", "Welt", "mondo", "verden"),
    ("book", "libro", "livre", "Buch", "libro", "bok"),
    ("day", "día", "jour", "Tag", "giorno", "dag"),
    ("love", "amor", "amour", "Liebe", "amore", "kjærlighet"),
)
_COMMON = {
    "en": "the and is are of to in that it was for with you this have not on how",
    "es": "el la los las y es de que en un una por con no para está cómo",
    "fr": "le la les et est de que dans un une pour avec ne pas vous je des",
    "de": "der die das und ist von zu in dass ein eine für mit nicht ich sie auf",
    "it": "il lo la gli e è di che in un una per con non sono come della",
    "no": "og er av til i at det en et for med ikke jeg du på som har",
}
_PRAISE = (
    "good great excellent love loved wonderful happy best amazing fantastic nice fresh delicious perfect fine enjoy "
    "enjoyed pleasant brilliant superb recommend delightful friendly helpful"
)
_BLAME = (
    "bad terrible awful hate hated horrible sad worst poor disappointing slow broken dirty rude boring wrong "
    "disappointed unhappy useless ugly cold angry waste"
)


def _text(text: str) -> str:
    if not text.strip() or len(text) > MAX_CHARS:
        raise ToolFailure("invalid", f"text is empty or longer than {MAX_CHARS} characters")
    return text


def _language(name: str) -> str:
    key = name.strip().lower()
    for code, full in _LANGUAGES.items():
        if key in (code, full.lower()) or key.startswith(f"{code}-"):
            return code
    raise ToolFailure("not_found", f"there is no language {name!r}; expected one of {', '.join(_LANGUAGES.values())}")


def _guess(text: str) -> tuple[str, float]:
    """Return the most likely language of a text, and the share of its words that are common in this language."""
    words = re.findall(r"[^\W\d_]+", text.lower())
    shares = {}
    for number, code in enumerate(_LANGUAGES):
        known = {*_COMMON[code].split(), *(row[number].lower() for row in _LEXICON)}
        shares[code] = sum(word in known for word in words) / len(words) if words else 0.0
    best = max(shares, key=lambda code: shares[code])
    return (best, shares[best]) if shares[best] else ("en", 0.0)


@tool(
    "text.translate",
    {"translation": str, "source": str, "target": str, "untranslated": [str]},
    {"text": "Good morning, world", "target": "es"},
    {"text": "Wo ist der Bahnhof", "target": "English", "source": "de"},
    fails=[{"text": "hello", "target": "Klingon"}, {"text": "", "target": "es"}],
    aliases=["translate_text", "translate", "translation", "language_translation"],
)
def translate(world: World, text: str, target: str, source: str | None = None) -> Result:
    """Translate a text word by word with a small dictionary. Unknown words are not translated and are listed."""
    goal = _language(target)
    start = _language(source) if source else _guess(_text(text))[0]
    columns = list(_LANGUAGES)
    lexicon = {row[columns.index(start)].lower(): row[columns.index(goal)] for row in _LEXICON}
    missing: list[str] = []

    def word(match: re.Match[str]) -> str:
        translation = lexicon.get(match.group().lower())
        if translation is None and start != goal:
            missing.append(match.group())
        return match.group() if translation is None or start == goal else translation

    phrases = "|".join(re.escape(phrase) for phrase in sorted(lexicon, key=len, reverse=True) if " " in phrase)
    pattern = rf"(?i)\b(?:{phrases})\b|[^\W\d_]+" if phrases else r"[^\W\d_]+"
    return {
        "translation": re.sub(pattern, word, _text(text)),
        "source": _LANGUAGES[start],
        "target": _LANGUAGES[goal],
        "untranslated": list(dict.fromkeys(missing)),
    }


def _sentences(text: str) -> list[str]:
    return [part.strip() for part in re.split(r"(?<=[.!?])\s+", text.strip()) if part.strip()]


@tool(
    "text.summarize",
    {"summary": str, "sentences": int},
    {"text": "Cats sleep a lot. They hunt at night. Dogs bark. Cats and dogs are pets.", "max_sentences": 2},
    fails=[{"text": " ", "max_sentences": 1}, {"text": "Hello.", "max_sentences": 0}],
    aliases=["summarize_text", "summarize", "text_summary", "get_summary"],
)
def summarize(world: World, text: str, max_sentences: int) -> Result:
    """Summarize a text by its most important sentences. They contain the most frequent words and keep their order."""
    if max_sentences < 1:
        raise ToolFailure("invalid", f"max_sentences is {max_sentences}; expected at least 1")
    sentences = _sentences(_text(text))
    words = [word for word in plain(text).split() if len(word) > 3]
    weights = Counter(words)

    def weight(number: int) -> tuple[float, int]:
        own = [weights[word] for word in plain(sentences[number]).split()]
        return (-sum(own) / max(len(own), 1), number)

    kept = sorted(sorted(range(len(sentences)), key=weight)[:max_sentences])
    return {"summary": " ".join(sentences[number] for number in kept), "sentences": len(kept)}


@tool(
    "text.sentiment",
    {"sentiment": str, "score": float},
    {"text": "The food was great and the staff friendly."},
    {"text": "A terrible, boring waste of time"},
    fails=[{"text": ""}],
    aliases=["sentiment_analysis", "analyze_sentiment", "get_sentiment", "detect_sentiment"],
)
def sentiment(world: World, text: str) -> Result:
    """Get the sentiment of a text (positive, negative or neutral) and a score from -1 to 1.

    Positive and negative words are counted. The word "not" reverses the next word.
    """
    good, bad = set(_PRAISE.split()), set(_BLAME.split())
    words = plain(_text(text).replace("n't", " not")).split()
    score = 0
    for before, word in zip(["", *words], words, strict=False):
        value = (word in good) - (word in bad)
        score += -value if before in ("not", "no", "never") else value
    strength = round(max(-1.0, min(1.0, score / 3)), 2)
    return {"sentiment": "positive" if score > 0 else "negative" if score < 0 else "neutral", "score": strength}


@tool(
    "text.detect_language",
    {"language": str, "code": str, "confidence": float},
    {"text": "Où est la gare, s'il vous plaît?"},
    fails=[{"text": ""}],
    aliases=["detect_language", "language_detection", "identify_language"],
)
def detect_language(world: World, text: str) -> Result:
    """Detect the language of a text: English, Spanish, French, German, Italian or Norwegian."""
    code, share = _guess(_text(text))
    return {"language": _LANGUAGES[code], "code": code, "confidence": round(min(0.99, 0.3 + share), 2)}


@tool(
    "text.count",
    {"characters": int, "words": int, "sentences": int, "lines": int},
    {"text": "One two three. Four!"},
    fails=[{"text": "", "unit": "words"}],
    aliases=["word_count", "count_words", "count_characters", "text_statistics"],
)
def count(world: World, text: str) -> Result:
    """Count the characters, words, sentences and lines of a text."""
    return {
        "characters": len(text),
        "words": len(text.split()),
        "sentences": len(_sentences(text)),
        "lines": len(text.splitlines()),
    }


@tool(
    "text.diff",
    {"diff": [str], "similarity": float},
    {"a": "one\ntwo\nthree", "b": "one\n2\nthree"},
    fails=[{"a": "x" * 20001, "b": ""}],
    aliases=["compare_texts", "diff_text", "text_compare", "text_diff"],
)
def diff(world: World, a: str, b: str) -> Result:
    """Compare two texts line by line.

    Returns the lines that differ, marked with - and +, and the similarity from 0 to 1.
    """
    if max(len(a), len(b)) > 20_000:
        raise ToolFailure("invalid", "a text is longer than 20000 characters")
    left, right = a.splitlines()[:500], b.splitlines()[:500]
    lines = list(difflib.unified_diff(left, right, lineterm="", n=0))[2:]
    return {
        "diff": [line for line in lines if not line.startswith("@@")],
        "similarity": round(difflib.SequenceMatcher(None, left, right).ratio(), 4),
    }


@tool(
    "hash.digest",
    {"algo": str, "digest": str},
    {"text": "hello", "algo": "sha256"},
    fails=[{"text": "hello", "algo": "rot13"}],
    aliases=["hash_text", "compute_hash", "sha256", "md5", "generate_hash"],
)
def digest(world: World, text: str, algo: Literal["md5", "sha1", "sha256", "sha512"]) -> Result:
    """Calculate the hash of a text in hexadecimal."""
    data = text.encode("utf-8", "replace")
    return {"algo": algo, "digest": hashlib.new(algo, data, usedforsecurity=False).hexdigest()}


@tool(
    "encode.base64",
    {"result": str},
    {"text": "hello", "direction": "encode"},
    {"text": "aGVsbG8=", "direction": "decode"},
    fails=[{"text": "!!!", "direction": "decode"}],
    aliases=["base64", "base64_encode", "base64_decode", "encode_base64", "decode_base64"],
)
def base64_text(world: World, text: str, direction: Literal["encode", "decode"]) -> Result:
    """Encode a text in Base64, or decode Base64 to a text."""
    if direction == "encode":
        return {"result": base64.b64encode(text.encode("utf-8", "replace")).decode()}
    try:
        return {"result": base64.b64decode(text.strip(), validate=True).decode()}
    except (binascii.Error, ValueError):
        raise ToolFailure("invalid", "the text is not valid Base64, or does not decode to text") from None


@tool(
    "qr.create",
    {"url": str, "size": int, "characters": int},
    {"text": "https://example.com"},
    fails=[{"text": ""}],
    aliases=["generate_qr_code", "create_qr_code", "qr_code", "generate_qr"],
)
def qr_code(world: World, text: str) -> Result:
    """Create a QR code for a text of up to 2000 characters. Returns the address of the picture."""
    if not 1 <= len(text) <= 2000:
        raise ToolFailure("invalid", "text must have 1 to 2000 characters")
    name = hashlib.sha256(text.encode("utf-8", "replace")).hexdigest()[:16]
    return {"url": f"https://qr.example/{name}.png", "size": 21 + 4 * min(39, len(text) // 15), "characters": len(text)}


@tool(
    "uuid.create",
    {"uuid": str},
    {"seed": "order 7"},
    fails=[{"seed": 7}],
    aliases=["generate_uuid", "create_uuid", "new_uuid"],
)
def create_uuid(world: World, seed: str) -> Result:
    """Create a UUID (version 5) from a seed. The same seed gives the same UUID."""
    return {"uuid": str(uuid.uuid5(uuid.NAMESPACE_OID, seed))}
