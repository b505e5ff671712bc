"""Creates the clients of the official SDKs. Only this module imports them. Used by providers with ``transport=sdk``."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Unpack

from bestofn.builders.providers.sdk_transport import NO_KEY, ClientSettings

if TYPE_CHECKING:
    from anthropic import AsyncAnthropic
    from openai import AsyncOpenAI

TokenProvider = Callable[[], Awaitable[str]]


def openai_client(token: TokenProvider | None = None, **settings: Unpack[ClientSettings]) -> AsyncOpenAI:
    """Return OpenAI's client. If ``token`` is given, it returns the bearer token of each request."""
    from openai import AsyncOpenAI

    return AsyncOpenAI(api_key=token or NO_KEY, **settings)


def anthropic_client(**settings: Unpack[ClientSettings]) -> AsyncAnthropic:
    """Return Anthropic's client."""
    from anthropic import AsyncAnthropic

    return AsyncAnthropic(api_key=NO_KEY, **settings)
