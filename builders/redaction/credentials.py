"""Finds credentials in text by their shape (``sk-…``, ``Bearer …``), and by the name of a setting or a header."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

START = r"(?:\b|\\[nrt])"  # in JSON text, a key may follow an escaped line break
SHAPES: Mapping[str, str] = {
    "an API key (sk-…)": START + r"[spr]k[-_][\w-]{16,}",
    "an API key of a model service": START + r"(?:gsk|xai|nvapi|pplx|r8|fw|tgp|sgp|csk)[-_][\w-]{20,}",
    "a Hugging Face token": START + r"hf_[A-Za-z0-9]{20,}",
    "a GitHub token": START + r"(?:gh[pousr]_[A-Za-z0-9]{20,}|github_pat_\w{20,})",
    "a GitLab token": START + r"glpat-[\w-]{16,}",
    "an AWS access key": START + r"(?:AKIA|ASIA)[0-9A-Z]{16}\b",
    "a Google API key": START + r"AIza[\w-]{30,}",
    "a Google access token": START + r"ya29\.[\w-]{20,}",
    "a Slack token": START + r"xox[a-z]-[\w-]{10,}",
    "a package registry token": START + r"(?:npm_|pypi-)[\w-]{30,}",
    "an Azure account key": START + r"AccountKey=[\w+/=]{20,}",
    "a JSON Web Token": START + r"eyJ[\w-]{8,}\.eyJ[\w-]{8,}\.[\w-]{8,}",
    "an Authorization header": START + r"(?:[Bb]earer|[Bb]asic|BEARER|BASIC)\s+[\w.~+/=-]{16,}",
}
"""Name of the shape -> regular expression. A match is a credential only if ``is_random`` agrees."""

_COMPILED = {name: re.compile(pattern, re.ASCII) for name, pattern in SHAPES.items()}
ANY_SHAPE = "|".join(SHAPES.values())
_ANY = re.compile(ANY_SHAPE, re.ASCII)
_LOOSE = re.compile(
    r"(?i)(?<![\w/.-])(?:sk|pk|rk|gsk|xai|hf|key)[-_][\w-]{8,}|(?<!\w)(?:bearer|basic)\s+[\w.~+/=-]{8,}", re.ASCII
)
_LETTERS_ONLY = re.compile(r"(?:\\[nrt])?hf_(?=[A-Za-z]*[a-z][A-Z][A-Za-z]*[a-z][A-Z])[A-Za-z0-9]{30,}", re.ASCII)
_WORD = re.compile(r"[\w.~+/=-]{16,}", re.ASCII)
_EXAMPLE = re.compile(r"(?i)example|your|placeholder|x{4}|\*{3}")


def keys_in(text: str) -> Iterator[tuple[str, str]]:
    """Yield (name of the shape, credential) for each text in ``text`` that has the shape of a credential."""
    for name, pattern in _COMPILED.items():
        for match in pattern.finditer(text):
            if is_random(match[0]):
                yield name, match[0]


def masked_keys(text: str) -> str:
    """Return ``text`` with "***" in place of each text that has the shape of a credential and looks random."""
    return _ANY.sub(_masked, text)


def _masked(match: re.Match[str]) -> str:
    """Return the replacement of a match: "***" for a credential, otherwise the match unchanged.

    An escaped line break before a credential is kept, so that JSON text stays valid.
    """
    if not is_random(match[0]):
        return match[0]
    return f"{match[0][:2]}***" if match[0].startswith("\\") else "***"


def masked_key_like(text: str) -> str:
    """Return ``text`` with "***" in place of all text that has the shape of a credential, even if it is not random.

    Used for messages of services and for logs, where masking too much does no harm.
    """
    return _LOOSE.sub("***", masked_keys(text))


def masked_random(text: str) -> str:
    """Return ``text`` with "***" in place of each word of at least 16 characters that looks random.

    Used for the output of programs that handle credentials without a known shape.
    """
    return _WORD.sub(lambda match: "***" if is_random(match[0]) else match[0], text)


def is_random(text: str) -> bool:
    """Return whether ``text`` looks like a generated key: many different digits and letters, without "example".

    Some keys, such as Hugging Face tokens, may consist of letters only.
    """
    if len(set(text)) < 8 or _EXAMPLE.search(text):
        return False
    digits, letters = sum(map(str.isdigit, text)), sum(map(str.isalpha, text))
    return (digits >= 2 and letters >= 2) or bool(_LETTERS_ONLY.fullmatch(text))


# Decides by the name of a setting, a header or a query parameter whether its value is a credential.

_SETTING = re.compile(
    r"(?i)((api|access|secret|private|subscription|account|signing|master|auth|client|shared|function)[_-]?keys?|"
    r"token|secret|password|passwd|passphrase|(?<![a-z])pwd|(?<![a-z])auth|authorization|credentials?|cookies?|"
    r"signature|connection[_-]?string)$"
)
_TOKEN_OF_A_VOCABULARY = re.compile(r"(?i)(bos|eos|pad|unk|sep|cls|mask|image|stop)_token$")
_PARAMETER = re.compile(r"(?i)(^|[_.-])(key|sig|code|sas|jwt)$")
_HEADER = re.compile(r"(?i)auth|key|token|secret|cookie|credential|password|passwd|signature|session")
_CLIENT_HEADER = re.compile(r"(?i)referer|title|user-agent|organization|project|trace|request-id|forwarded")
HARMLESS_HEADERS = frozenset(
    {
        "accept",
        "accept-encoding",
        "accept-language",
        "anthropic-beta",
        "anthropic-version",
        "cache-control",
        "connection",
        "content-type",
        "http-referer",
        "openai-beta",
        "referer",
        "user-agent",
        "x-title",
    }
)
"""The headers whose values may be published. The values of all other headers are treated as secrets."""


def is_secret_setting(name: str) -> bool:
    """Return whether a setting with the name ``name`` contains a credential, for example ``api_key``."""
    return bool(_SETTING.search(name)) and not _TOKEN_OF_A_VOCABULARY.search(name)


def is_secret_parameter(name: str) -> bool:
    """Return whether a query parameter with the name ``name`` contains a credential, for example ``sig``."""
    return bool(_PARAMETER.search(name)) or is_secret_setting(name)


def is_harmless_header(name: str) -> bool:
    """Return whether the value of the header ``name`` may be published."""
    return name.lower() in HARMLESS_HEADERS


def changes_completions(header: str) -> bool:
    """Return whether the header with this name may change completions, for example by enabling a beta feature.

    Headers that contain a credential or describe the client do not change completions.
    """
    return not _HEADER.search(header) and not _CLIENT_HEADER.search(header)
