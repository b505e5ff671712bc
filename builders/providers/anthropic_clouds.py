"""Claude on Amazon Bedrock and Google Vertex. They have no batch API in the format of Anthropic.

Selected with ``provider=bedrock`` and ``provider=vertex``. boto3 and google-auth find the credentials in their usual
places, such as environment variables and configuration files.
"""

from __future__ import annotations

import os
from typing import Literal, Unpack
from urllib.parse import quote

from bestofn.builders.errors import require
from bestofn.builders.providers.anthropic_messages import VERSION, AnthropicMessages, ThinkingSettings
from bestofn.builders.providers.credentials import AwsSignature, BearerTokens, Credentials
from bestofn.builders.records import Request

VERTEX_REGIONS = {
    "global": "aiplatform.googleapis.com",
    "us": "aiplatform.us.rep.googleapis.com",
    "eu": "aiplatform.eu.rep.googleapis.com",
}
"""The regions of Vertex whose host does not begin with their name."""


class CloudSettings(ThinkingSettings, total=False):
    """The settings of ``AnthropicCloud``. ``AnthropicMessages`` documents them."""

    cache: Literal["5m", "1h"] | None


class AnthropicCloud(AnthropicMessages):
    """Base class of the providers of Claude in a cloud. The address of the service depends on the region."""

    key_required = False
    headers_variable = ""  # its headers are for Anthropic's own service
    usual_access: str  # what to check if there is no key; ``key`` is the key of the settings

    def __init__(self, *, cache: Literal["5m", "1h"] | None = None, **settings: Unpack[ThinkingSettings]) -> None:
        super().__init__(cache=cache, **settings)

    def key_headers(self, key: str) -> dict[str, str]:
        """Return the header that contains ``key``, unless it is empty. The version of the API is in the body."""
        return {"Authorization": f"Bearer {key}"} if key else {}

    def body(self, request: Request, n: int) -> dict[str, object]:
        """Return the request body. The clouds read the model from the path, and the version from the body."""
        body = {"anthropic_version": VERSION, **super().body(request, n)}
        del body["model"]
        return body

    def access(self) -> str:
        """Return the advice that the user gets if the service refuses the credentials; see ``HttpService.access``."""
        return super().access() if self.key else self.usual_access.format(key=self.config_key)


class BedrockMessages(AnthropicCloud):
    """Claude on Amazon Bedrock. ``model`` is a model id or the ARN of an inference profile.

    Requests are signed with the credentials that boto3 finds (environment, ``profile``, role of the machine). With a
    key in ``api_key`` or ``AWS_BEARER_TOKEN_BEDROCK``, the key is sent instead. If ``region`` is None, it is read from
    AWS's environment variables or files. For the other settings, see ``AnthropicMessages``.
    """

    name = "anthropic_bedrock"
    url_variable = "ANTHROPIC_BEDROCK_BASE_URL"
    key_variable = "AWS_BEARER_TOKEN_BEDROCK"
    operational = (*AnthropicMessages.operational, "profile")
    usual_access = (
        "Check the AWS credentials (environment variables, {key}.profile or the role of the machine), their expiry, "
        "{key}.region, and whether they may invoke this model."
    )

    def __init__(
        self,
        *,
        region: str | None = None,
        profile: str | None = None,
        **settings: Unpack[CloudSettings],
    ) -> None:
        self._profile = profile
        self._region = region or os.environ.get("AWS_REGION") or os.environ.get("AWS_DEFAULT_REGION")
        if not self._region:
            self._region = _region_of(profile)
        self.public_url = f"https://bedrock-runtime.{self._region}.amazonaws.com"
        super().__init__(**settings)
        self.path = f"/model/{quote(self.model, safe=':')}/invoke"

    def body(self, request: Request, n: int) -> dict[str, object]:
        """Return the request body. The beta features are in the body, because Bedrock ignores the header."""
        body = super().body(request, n)
        betas = [value for name, value in self._headers.items() if name.lower() == "anthropic-beta"]
        if betas and "anthropic_beta" not in body:
            body["anthropic_beta"] = [beta.strip() for beta in betas[0].split(",")]
        return body

    def credentials(self) -> Credentials | None:
        """Return the signatures, unless there is a key; see ``HttpService.credentials``."""
        assert self._region
        return None if self.key else AwsSignature("bedrock", self._region, self._profile).open()


class VertexMessages(AnthropicCloud):
    """Claude on Google Vertex. ``region`` is for example ``global`` or ``europe-west1``; ``project`` is a project id.

    If ``region`` is None, ``CLOUD_ML_REGION`` is used. If ``project`` is None, ``ANTHROPIC_VERTEX_PROJECT_ID`` or
    ``GOOGLE_CLOUD_PROJECT`` is used. The credentials are Google's default credentials, or an access token in
    ``api_key``. For the other settings, see ``AnthropicMessages``.
    """

    name = "anthropic_vertex"
    url_variable = "ANTHROPIC_VERTEX_BASE_URL"
    key_variable = "CLOUDSDK_AUTH_ACCESS_TOKEN"
    operational = (*AnthropicMessages.operational, "project")
    usual_access = (
        "Check Google's default credentials (`gcloud auth application-default login`), {key}.project, {key}.region, "
        "and whether the account may use this model."
    )

    def __init__(
        self,
        *,
        region: str | None = None,
        project: str | None = None,
        **settings: Unpack[CloudSettings],
    ) -> None:
        self._region = region or os.environ.get("CLOUD_ML_REGION") or ""
        variables = ("ANTHROPIC_VERTEX_PROJECT_ID", "GOOGLE_CLOUD_PROJECT")
        self._project = project or next(filter(None, map(os.environ.get, variables)), "")
        if not self._region:
            raise ValueError(
                "region is not set; expected a region such as global, in this setting or in the environment variable "
                "CLOUD_ML_REGION"
            )
        if not self._project:
            raise ValueError(
                "project is not set; expected the id of a project, in this setting or in the environment variable "
                f"{' or '.join(variables)}"
            )
        host = VERTEX_REGIONS.get(self._region, f"{self._region}-aiplatform.googleapis.com")
        self.public_url = f"https://{host}/v1"
        super().__init__(**settings)
        place = f"/projects/{quote(self._project, safe=':')}/locations/{quote(self._region, safe='')}"
        self.path = f"{place}/publishers/anthropic/models/{quote(self.model, safe='@')}:rawPredict"

    def credentials(self) -> Credentials | None:
        """Return Google's tokens, unless there is a key; see ``HttpService.credentials``."""
        return None if self.key else BearerTokens("google").open()


def _region_of(profile: str | None) -> str:
    """Return the region that AWS's environment variables or files set. Raises ``ValueError`` if there is none."""
    require("boto3")
    from botocore.exceptions import ProfileNotFound
    from botocore.session import Session

    try:
        region = Session(profile=profile).get_config_variable("region")
    except ProfileNotFound as error:
        raise ValueError(f"profile is {profile!r}; expected a profile in AWS's configuration files") from error
    if not region:
        raise ValueError(
            "region is not set; expected a region such as us-east-1, in this setting, in the environment variable "
            "AWS_REGION or in AWS's configuration files"
        )
    return region
