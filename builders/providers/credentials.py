"""Credentials that expire or that sign requests: bearer tokens of Entra, Google or a command, and signatures of AWS.

``provider.bearer`` is ``entra``, ``entra:SCOPE``, ``google`` or ``command:WORDS``. azure-identity, google-auth and
botocore find the credentials in their usual places: environment variables, files, the login of ``az``, ``gcloud`` or
``aws``, the machine.
"""

from __future__ import annotations

import asyncio
import re
import shlex
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC
from typing import Any, Protocol

from bestofn.builders.errors import (
    AuthenticationError,
    BestofnError,
    ConnectionFailed,
    ProviderError,
    missing_extra,
    require,
)
from bestofn.builders.redaction.credentials import masked_random
from bestofn.builders.redaction.secrets import redacted_message, remember

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

TRANSIENT = frozenset({"TransportError", "ServiceRequestError", "ServiceResponseError", "HTTPClientError"})
"""Exceptions of google-auth, azure-identity and botocore that mean: the server of the credentials did not answer."""

Token = tuple[str, float]
"""A token and the time when it expires, in seconds since 1970."""


class Credentials(Protocol):
    """Credentials that are made anew for each request. ``HttpTransport`` adds them."""

    async def headers(self, method: str, url: str, body: bytes) -> dict[str, str]:
        """Return the headers that authenticate one request."""
        ...

    async def renewed(self, refused: Mapping[str, str]) -> bool:
        """Return whether the next request has other credentials than those in the headers ``refused``."""
        ...


class BearerTokens:
    """Sends a valid token of ``source``, and fetches a new one before it expires.

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

    async def headers(self, method: str, url: str, body: bytes) -> dict[str, str]:
        """Return the header with a valid token; see ``Credentials``."""
        return {"Authorization": f"Bearer {await self._valid()}"}

    async def renewed(self, refused: Mapping[str, str]) -> bool:
        """Fetch a new token if the current one is ``refused``; see ``Credentials``."""
        token = refused["Authorization"].removeprefix("Bearer ")
        return await self._valid(refused=token) != token

    async def _valid(self, refused: str = "") -> str:
        """Return a valid token. A new token is fetched if the current token has expired or equals ``refused``."""
        async with self._lock:
            if time.time() >= self._until or self._token == refused:
                self._token, expires = await asyncio.to_thread(self._fetch)
                self._until = expires - min(EARLY_S, (expires - time.time()) / 10)
                remember([self._token])
            return self._token

    def access(self, config_key: str) -> str:
        """Return the advice that the user gets if a service refuses the tokens.

        ``config_key`` is the configuration key of the provider.
        """
        return ACCESS[self._kind].format(setting=f"{config_key}.bearer")


class AwsSignature:
    """Signs requests to the AWS service ``service`` with the credentials that botocore finds."""

    def __init__(self, service: str, region: str, profile: str | None) -> None:
        self._service, self._region, self._profile = service, region, profile
        self._secret = ""

    def open(self) -> AwsSignature:
        """Load the library that signs. Raises ``ModuleNotFoundError`` if it is not installed."""
        require("boto3")
        from botocore.session import Session

        self._session = Session(profile=self._profile)
        self._lock = asyncio.Lock()
        return self

    async def headers(self, method: str, url: str, body: bytes) -> dict[str, str]:
        """Return the headers with the signature; see ``Credentials``."""
        async with self._lock:  # botocore's sessions are not for several threads
            return await asyncio.to_thread(self._signed, method, url, body)

    async def renewed(self, refused: Mapping[str, str]) -> bool:
        """Return False, because botocore renews the credentials before they expire; see ``Credentials``."""
        return False

    def _signed(self, method: str, url: str, body: bytes) -> dict[str, str]:
        from botocore.auth import SigV4Auth
        from botocore.awsrequest import AWSRequest

        found = self._session.get_credentials()
        if found is None:
            raise AuthenticationError(
                "no AWS credentials were found in the environment variables, the files and the role of the machine"
            )
        frozen = found.get_frozen_credentials()
        if frozen.secret_key != self._secret:
            self._secret = frozen.secret_key
            remember([frozen.secret_key, frozen.token or ""])
        request = AWSRequest(method, url, data=body)
        SigV4Auth(frozen, self._service, self._region).add_auth(request)
        return dict(request.headers)


@contextmanager
def fetching_credentials(config_key: str) -> Iterator[None]:
    """Convert the errors of the libraries that fetch credentials in the block to errors of ``builders.errors``.

    Nothing was sent, and only a failure of the network can be retried. ``config_key`` is the key of the settings.
    """
    try:
        yield
    except BestofnError:
        raise
    except Exception as error:  # google-auth, azure-identity and botocore have many types of errors
        if missing_extra(error):
            raise
        raise _without_credentials(error, config_key) from error


def _without_credentials(error: Exception, config_key: str) -> ProviderError:
    reason = redacted_message(f"{type(error).__name__}: {error}")
    names = {kind.__name__ for kind in type(error).__mro__}
    if names & TRANSIENT or getattr(error, "retryable", False) or isinstance(error, OSError):
        return ConnectionFailed(f"the credentials could not be fetched: {reason}", cause="no credentials")
    return AuthenticationError(
        f"the credentials could not be fetched: {reason}\nCheck the credentials and the settings of {config_key}."
    )


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
