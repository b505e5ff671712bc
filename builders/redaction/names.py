"""Decides by the name of a setting, a header or a query parameter whether its value is a credential."""

from __future__ import annotations

import re

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
