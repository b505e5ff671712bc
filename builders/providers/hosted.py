"""Hosted services that speak OpenAI's Chat Completions: their addresses, keys and limits.

Selected with ``provider=groq`` and the like. A key of OpenAI is never sent to them. The facts are from the pages of the
services, read on 2026-11-27; an address of another region is ``provider.base_url``.
"""

from __future__ import annotations

from bestofn.builders.providers.openai_chat import OpenAIChat
from bestofn.builders.records import Request


class HostedChat(OpenAIChat):
    """A model of a hosted service. A request returns up to ``max_n`` completions; few services give more than one."""

    url_variable = ""  # OPENAI_BASE_URL is of another service


class OpenRouter(HostedChat):
    """openrouter.ai, which passes requests on to many services."""

    name = "openrouter"
    public_url = "https://openrouter.ai/api/v1"
    key_variable = "OPENROUTER_API_KEY"


class Together(HostedChat):
    """together.ai."""

    name = "together"
    public_url = "https://api.together.xyz/v1"
    key_variable = "TOGETHER_API_KEY"


class Fireworks(HostedChat):
    """fireworks.ai; models are named ``accounts/fireworks/models/NAME``."""

    name = "fireworks"
    public_url = "https://api.fireworks.ai/inference/v1"
    key_variable = "FIREWORKS_API_KEY"


class Groq(HostedChat):
    """groq.com. It refuses ``n`` above 1 and log-probabilities."""

    name = "groq"
    public_url = "https://api.groq.com/openai/v1"
    key_variable = "GROQ_API_KEY"
    omitted = (*OpenAIChat.omitted, "logprobs")

    def body(self, request: Request, n: int) -> dict[str, object]:
        """Return the request body without log-probabilities."""
        body = super().body(request, n)
        body.pop("logprobs", None)
        return body


class Gemini(HostedChat):
    """Google's Gemini API at its endpoint for clients of OpenAI."""

    name = "gemini"
    public_url = "https://generativelanguage.googleapis.com/v1beta/openai"
    key_variable = "GEMINI_API_KEY"


class Mistral(HostedChat):
    """mistral.ai. It refuses unknown fields, and its name of ``seed`` is ``random_seed``."""

    name = "mistral"
    public_url = "https://api.mistral.ai/v1"
    key_variable = "MISTRAL_API_KEY"

    def body(self, request: Request, n: int) -> dict[str, object]:
        """Return the request body with Mistral's name of the seed."""
        body = super().body(request, n)
        if "seed" in body:
            body["random_seed"] = body.pop("seed")
        return body
