"""Creates the clients of the official SDKs. No other module imports them. Used by providers with ``transport=sdk``."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Unpack

from bestofn.builders.errors import require
from bestofn.builders.providers.sdk_transport import NO_KEY, ClientSettings

if TYPE_CHECKING:
    from anthropic import AsyncAnthropic, AsyncAnthropicBedrock, AsyncAnthropicVertex
    from openai import AsyncAzureOpenAI, AsyncOpenAI

TokenProvider = Callable[[], Awaitable[str]]


def openai_client(token: TokenProvider | None = None, **settings: Unpack[ClientSettings]) -> AsyncOpenAI:
    """Return OpenAI's client. If ``token`` is given, the client calls it before each request to get a bearer token."""
    from openai import AsyncOpenAI

    return AsyncOpenAI(api_key=token or NO_KEY, **settings)


def anthropic_client(**settings: Unpack[ClientSettings]) -> AsyncAnthropic:
    """Return Anthropic's client for its own API."""
    from anthropic import AsyncAnthropic

    return AsyncAnthropic(api_key=NO_KEY, **settings)


def azure_client(
    key: str, api_version: str, token: TokenProvider | None = None, **settings: Unpack[ClientSettings]
) -> AsyncAzureOpenAI:
    """Return OpenAI's client for Azure.

    If ``token`` is given, the client calls it before each request to get an Entra token, and ``key`` is not used.
    Without ``token`` and ``key``, the client reads a token from ``AZURE_OPENAI_AD_TOKEN``.
    """
    from openai import AsyncAzureOpenAI

    settings["base_url"] += "/openai"
    api_key = None if token else key or None
    return AsyncAzureOpenAI(api_version=api_version, api_key=api_key, azure_ad_token_provider=token, **settings)


def bedrock_client(
    key: str, region: str, profile: str | None, **settings: Unpack[ClientSettings]
) -> AsyncAnthropicBedrock:
    """Return Anthropic's client for Amazon Bedrock. If ``key`` is empty, requests are signed with AWS credentials."""
    require("boto3")
    from anthropic import AsyncAnthropicBedrock

    return AsyncAnthropicBedrock(api_key=key or None, aws_region=region, aws_profile=profile, **settings)


def vertex_client(token: str, region: str, project: str, **settings: Unpack[ClientSettings]) -> AsyncAnthropicVertex:
    """Return Anthropic's client for Google Vertex. If ``token`` is empty, Google's default credentials are used."""
    require("google")
    require("google.auth")
    from anthropic import AsyncAnthropicVertex

    return AsyncAnthropicVertex(access_token=token or None, region=region, project_id=project, **settings)
