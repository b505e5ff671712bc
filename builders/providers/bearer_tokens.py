"""Fetches short-lived bearer tokens from Microsoft Entra, from Google, or from a command. Used by OpenAI's clients.

``provider.bearer`` is ``entra``, ``entra:SCOPE``, ``google`` or ``command:WORDS``. azure-identity and google-auth find
the credentials in their usual places: environment variables, files, the login of ``az`` or ``gcloud``, the machine.
"""

from __future__ import annotations

import asyncio
import re
import shlex
import subprocess
import time
from collections.abc import Callable
from datetime import UTC
from typing import Any

from bestofn.builders.errors import AuthenticationError, require
from bestofn.builders.redaction.key_shapes import masked_random
from bestofn.builders.redaction.secrets import redacted_message

ENTRA_SCOPE = "https://cognitiveservices.azure.com/.default"
GOOGLE_SCOPE = "https://www.googleapis.com/auth/cloud-platform"
COMMAND_S = 300.0  # the token of a command is used for this long
COMMAND_LIMIT_S = 60.0
EARLY_S = 300.0  # a token is replaced this long before it expires

TOKEN = re.compile(r"[A-Za-z0-9._~+/=:-]+")
FORM = re.compile(r"entra(:\S+)?|google|command:\s*\S.*")

ACCESS = {
    "entra": "Check the identity that azure-identity uses for {setting}=entra (environment variables, `az login`, the "
    "identity of the machine) and its role, for example Cognitive Services OpenAI User.",
    "google": "Check Google's default credentials, which {setting}=google uses (`gcloud auth application-default "
    "login`), and whether the account may use this model.",
    "command": "Check the command of {setting}, which printed the refused token.",
}
"""What the user can do if a service refuses the tokens of a source."""

Token = tuple[str, float]
"""A token and the time when it expires, in seconds since 1970."""


class BearerTokens:
    """Returns a valid token of ``source`` when called, and fetches a new one before it expires.

    ``source`` is a value of ``provider.bearer``. Raises ``ValueError`` if it has none of the forms that the module's
    docstring lists.
    """

    def __init__(self, source: str) -> None:
        if not FORM.fullmatch(source):
            raise ValueError(  # without the value, which may be a token
                "bearer does not name the source of a token; expected entra, entra:SCOPE, google or command:WORDS. A "
                "token that does not expire is set with api_key"
            )
        self._kind, _, self._rest = source.partition(":")
        self._token, self._until = "", 0.0

    def open(self) -> BearerTokens:
        """Load the library that fetches the tokens. Raises ``ModuleNotFoundError`` if it is not installed."""
        make = {"entra": _from_entra, "google": _from_google, "command": _from_command}[self._kind]
        self._fetch = make(self._rest)
        self._lock = asyncio.Lock()
        return self

    async def __call__(self) -> str:
        """Return a valid token."""
        return await self.renewed("")

    async def renewed(self, refused: str) -> str:
        """Return a valid token. A new token is fetched if the current token has expired or equals ``refused``."""
        async with self._lock:
            if time.time() >= self._until or self._token == refused:
                self._token, expires = await asyncio.to_thread(self._fetch)
                self._until = expires - min(EARLY_S, (expires - time.time()) / 10)
            return self._token

    def access(self, config_key: str) -> str:
        """Return the advice that the user gets if a service refuses the tokens.

        ``config_key`` is the configuration key of the provider.
        """
        return ACCESS[self._kind].format(setting=f"{config_key}.bearer")


def _from_entra(scope: str) -> Callable[[], Token]:
    require("azure")
    require("azure.identity")
    from azure.identity import DefaultAzureCredential

    credential = DefaultAzureCredential()

    def fetch() -> Token:
        token = credential.get_token(scope or ENTRA_SCOPE)
        return token.token, float(token.expires_on)

    return fetch


def _from_google(rest: str) -> Callable[[], Token]:
    require("google")
    require("google.auth")
    import google.auth
    from google.auth.transport.requests import Request

    found: list[Any] = []

    def fetch() -> Token:
        if not found:
            found.append(google.auth.default(scopes=[GOOGLE_SCOPE])[0])
        found[0].refresh(Request())
        return found[0].token, found[0].expiry.replace(tzinfo=UTC).timestamp()

    return fetch


def _from_command(words: str) -> Callable[[], Token]:
    def fetch() -> Token:
        try:
            done = subprocess.run(
                shlex.split(words), capture_output=True, text=True, timeout=COMMAND_LIMIT_S, check=True
            )
        except (OSError, ValueError, subprocess.SubprocessError) as error:
            raise AuthenticationError(f"{_program(words)} failed: {_reason(error)}") from None
        token = done.stdout.strip()
        if not TOKEN.fullmatch(token):
            raise AuthenticationError(
                f"{_program(words)} printed no token; expected one line of ASCII letters, digits and the marks "
                "- . _ ~ + / = :"
            )
        return token, time.time() + COMMAND_S

    return fetch


def _program(words: str) -> str:
    """Return text that names only the program of the command ``words``, because the arguments may be credentials."""
    return f"the command of bearer, {masked_random(words.split()[0])!r},"


def _reason(error: Exception) -> str:
    """Return why a command failed, without the words of the command and with credentials masked."""
    if isinstance(error, subprocess.CalledProcessError):
        printed = masked_random(redacted_message(error.stderr.strip()[-500:]))
        return f"exit code {error.returncode}" + (f": {printed}" if printed else "")
    if isinstance(error, subprocess.TimeoutExpired):
        return f"it did not end within {COMMAND_LIMIT_S:.0f} s"
    return f"{type(error).__name__}: {masked_random(str(error))}"
