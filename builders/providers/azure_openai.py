"""Chat Completions of Azure OpenAI. Selected with ``provider=azure_openai``."""

from __future__ import annotations

import os
from typing import Literal, Unpack
from urllib.parse import quote

import yarl

from bestofn.builders.errors import AuthenticationError
from bestofn.builders.providers.http_service import BatchSettings
from bestofn.builders.providers.openai_chat import OpenAIChat
from bestofn.builders.redaction.secrets import remember
from bestofn.builders.redaction.urls import with_path

API_VERSION = "2024-10-21"  # the newest version that is not a preview
TOKEN_VARIABLE = "AZURE_OPENAI_AD_TOKEN"


class AzureOpenAI(OpenAIChat):
    """A deployment of Azure OpenAI. ``model`` is its name; ``base_url`` is ``https://RESOURCE.openai.azure.com``.

    Without ``base_url``, the environment variable ``AZURE_OPENAI_ENDPOINT`` is used. Without ``api_version``,
    ``OPENAI_API_VERSION`` is used. For the other settings, see ``OpenAIChat``. The credentials are one of these:

    - a key in ``api_key`` or ``AZURE_OPENAI_API_KEY``;
    - ``bearer="entra"``, for the identity of the user or the machine;
    - a token in ``AZURE_OPENAI_AD_TOKEN``.
    """

    name = "azure_openai"
    public_url = ""
    url_variable = "AZURE_OPENAI_ENDPOINT"
    key_variable = "AZURE_OPENAI_API_KEY"
    batch_endpoint = "/chat/completions"
    operational = (*OpenAIChat.operational, "api_version")

    def __init__(
        self,
        *,
        api_version: str | None = None,
        bearer: str | None = None,
        max_n: int = 128,
        max_tokens_field: Literal["max_tokens", "max_completion_tokens"] = "max_completion_tokens",
        **settings: Unpack[BatchSettings],
    ) -> None:
        super().__init__(bearer=bearer, max_n=max_n, max_tokens_field=max_tokens_field, **settings)
        self.path = f"/deployments/{quote(self.model, safe='')}/chat/completions"
        chosen = api_version or self._extra_query.get("api-version")
        self._api_version = str(chosen or "") or os.environ.get("OPENAI_API_VERSION") or API_VERSION

    def request_url(self) -> str:
        """Return the base URL of the requests, with the version of the API, which changes no completion."""
        url = yarl.URL(with_path(self._url, "/openai"))
        return str(url.update_query({"api-version": self._api_version}))

    def key_headers(self, key: str) -> dict[str, str]:
        """Return the header with the key or the token. Raises ``AuthenticationError`` if there are no credentials."""
        if self._tokens:
            return {}
        if key:
            return {"api-key": key}
        if token := os.environ.get(TOKEN_VARIABLE, "").strip():
            remember([token])
            return {"Authorization": f"Bearer {token}"}
        raise AuthenticationError(
            f"no credentials for {self.base_url}: set {self.key_variable} or {TOKEN_VARIABLE}, or "
            f"{self.config_key}.bearer=entra."
        )

    def access(self) -> str:
        """Return the advice that the user gets if the service refuses the credentials; see ``HttpService.access``."""
        if self.key or self._tokens:
            return super().access()
        return f"Check the token in {TOKEN_VARIABLE}, which expires. {self.config_key}.bearer=entra fetches new tokens."
