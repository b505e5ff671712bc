"""Loopback doubles of Azure OpenAI, Amazon Bedrock, Google Vertex, and an endpoint with bearer tokens.

Each double checks the credentials, the URL and the body of every request. A request with a mistake gets the status 401,
and ``problems`` lists the mistakes. Three of ten correct requests are answered with a failure.
"""

from __future__ import annotations

import json
import re
import time
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs

import jwt
from botocore.auth import SigV4Auth
from botocore.awsrequest import AWSRequest
from botocore.credentials import Credentials
from cryptography.hazmat.primitives.asymmetric import rsa
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat

from tests.wire_server import Answer, Sent

FAILURES = (
    Answer({"error": {"message": "slow down"}}, 429, {"retry-after-ms": "1"}),
    Answer({"error": {"message": "it broke"}}, 500),
    Answer(cut=True),
)
BUSY = (1, 4, 7)  # of ten requests in a row, these fail
AWS = Credentials("AKIDEXAMPLE00000", "planted/secret/of/aws/0123456789abcdef", "planted-session-token-of-aws")


class CloudDouble(ABC):
    """One cloud.

    ``environment(url)`` has the credentials and the address, and ``settings`` are the provider's settings.
    """

    provider: str  # the path of its class
    settings: Mapping[str, Any] = {}
    secrets: tuple[str, ...] = ()  # texts that no file of a run may contain
    failing = True

    def __init__(self) -> None:
        self.requests = 0
        self.paid: Counter[str] = Counter()
        self.problems: list[str] = []

    @abstractmethod
    def environment(self, url: str, folder: Path) -> dict[str, str]:
        """Return the client's environment variables: the credentials, and the address ``url``."""

    @abstractmethod
    def problem(self, sent: Sent) -> str:
        """Return the mistake in a request; "" if the request is correct."""

    @abstractmethod
    def reply(self, question: str, number: int, body: Any) -> Any:
        """Return the reply to ``question``."""

    def token(self, sent: Sent) -> Answer | None:
        """Return the answer to a request for a token; None for other requests."""
        return None

    def __call__(self, sent: Sent) -> Answer:
        if token := self.token(sent):
            return token
        if problem := self.problem(sent):
            self.problems.append(problem)
            return Answer({"error": {"message": problem}}, 401)
        number, self.requests = self.requests, self.requests + 1
        if self.failing and number % 10 in BUSY:
            return FAILURES[number % 3]
        content = sent.body["messages"][-1]["content"]
        question = content if isinstance(content, str) else content[0]["text"]
        self.paid[question] += sent.body.get("n") or 1
        return Answer(self.reply(question, number, sent.body), after_s=0.05)


def chat_reply(question: str, number: int, body: Any) -> Any:
    """Return a Chat Completions reply."""
    seed = body.get("seed") or 0
    choices = [
        {"index": at, "finish_reason": "stop", "message": {"role": "assistant", "content": f"{question} #{seed + at}"}}
        for at in range(body.get("n") or 1)
    ]
    usage = {"prompt_tokens": 5, "completion_tokens": 5 * len(choices), "total_tokens": 5 + 5 * len(choices)}
    return {"id": "r", "object": "chat.completion", "created": 1, "model": "m", "choices": choices, "usage": usage}


class AzureDouble(CloudDouble):
    """Azure OpenAI with a key."""

    provider = "bestofn.builders.providers.azure_openai.AzureOpenAI"
    settings = {"model": "my-deployment"}
    secrets = ("planted-key-of-azure-0123456789",)

    def environment(self, url: str, folder: Path) -> dict[str, str]:
        return {"AZURE_OPENAI_ENDPOINT": url, "AZURE_OPENAI_API_KEY": self.secrets[0]}

    def problem(self, sent: Sent) -> str:
        if sent.path != "/openai/deployments/my-deployment/chat/completions":
            return f"the path is {sent.path}"
        if sent.query != {"api-version": "2024-10-21"}:
            return f"the query is {sent.query}"
        if (sent.body["model"], "max_tokens" in sent.body) != ("my-deployment", False):
            return f"the body is {sent.body}"
        return self.problem_of_credentials(sent)

    def problem_of_credentials(self, sent: Sent) -> str:
        given = (sent.headers.get("api-key"), sent.headers.get("Authorization"))
        return "" if given == (self.secrets[0], None) else f"the credentials are {given}"

    def reply(self, question: str, number: int, body: Any) -> Any:
        return chat_reply(question, number, body)


class EntraDouble(AzureDouble):
    """Azure OpenAI with a managed identity. The double is also the token server."""

    settings = {"model": "my-deployment", "bearer": "entra"}
    secrets = ("planted-token-of-entra-0123456789", "planted-header-of-the-machine")

    def environment(self, url: str, folder: Path) -> dict[str, str]:
        machine = {"IDENTITY_ENDPOINT": f"{url}/identity", "IDENTITY_HEADER": self.secrets[1]}
        return {"AZURE_OPENAI_ENDPOINT": url, **machine}

    def token(self, sent: Sent) -> Answer | None:
        if sent.path != "/identity":
            return None
        if sent.headers.get("X-IDENTITY-HEADER") != self.secrets[1]:
            self.problems.append(f"the headers of the request for a token are {sent.headers}")
        if sent.query.get("resource") != "https://cognitiveservices.azure.com":
            self.problems.append(f"the resource is {sent.query.get('resource')}")
        later = str(int(time.time()) + 3600)
        return Answer({"access_token": self.secrets[0], "expires_on": later, "token_type": "Bearer", "resource": "r"})

    def problem_of_credentials(self, sent: Sent) -> str:
        given = (sent.headers.get("api-key"), sent.headers.get("Authorization"))
        return "" if given == (None, f"Bearer {self.secrets[0]}") else f"the credentials are {given}"


class AnthropicDouble(CloudDouble):
    """A double that gives Claude's replies; the base of the doubles of clouds that serve Claude."""

    model: str

    def reply(self, question: str, number: int, body: Any) -> Any:
        content = [{"type": "text", "text": f"{question} #{number}"}]
        usage = {"input_tokens": 5, "output_tokens": 5}
        message = {"id": "r", "type": "message", "role": "assistant", "model": self.model, "content": content}
        return {**message, "stop_reason": "end_turn", "stop_sequence": None, "usage": usage}

    def problem_of_body(self, sent: Sent) -> str:
        keys = {"anthropic_version", "max_tokens", "messages"}
        return "" if set(sent.body) == keys else f"the body has the keys {sorted(sent.body)}"


class BedrockDouble(AnthropicDouble):
    """Amazon Bedrock. The double checks each signature with botocore."""

    provider = "bestofn.builders.providers.anthropic_clouds.BedrockMessages"
    model = "eu.anthropic.claude-haiku-4-5-20251001-v1:0"
    settings = {"model": model}
    secrets = (str(AWS.secret_key), str(AWS.token))

    def environment(self, url: str, folder: Path) -> dict[str, str]:
        (folder / "aws").write_text(
            f"[default]\naws_access_key_id = {AWS.access_key}\naws_secret_access_key = {AWS.secret_key}\n"
            f"aws_session_token = {AWS.token}\nregion = eu-central-1\n"
        )
        files = {"AWS_SHARED_CREDENTIALS_FILE": str(folder / "aws"), "AWS_CONFIG_FILE": str(folder / "aws")}
        return {"ANTHROPIC_BEDROCK_BASE_URL": url, "AWS_EC2_METADATA_DISABLED": "true", **files}

    def problem(self, sent: Sent) -> str:
        if sent.path != f"/model/{self.model}/invoke":
            return f"the path is {sent.path}"
        return self.problem_of_body(sent) or self.problem_of_signature(sent)

    def problem_of_signature(self, sent: Sent) -> str:
        given = re.fullmatch(
            r"AWS4-HMAC-SHA256 Credential=([^/]+)/\d{8}/(.+)/bedrock/aws4_request, SignedHeaders=(.+), Signature=(\w+)",
            sent.headers.get("Authorization", ""),
        )
        if given is None or given[1] != AWS.access_key or given[2] != "eu-central-1":
            return "the request is not signed for Bedrock"
        headers = {name.lower(): value for name, value in sent.headers.items()}
        signed = {name: headers.get(name, "") for name in given[3].split(";")}
        request = AWSRequest("POST", f"http://{headers['host']}{sent.raw_path}", headers=signed, data=sent.raw)
        request.context["timestamp"] = headers["x-amz-date"]
        signer = SigV4Auth(AWS, "bedrock", "eu-central-1")
        text = signer.string_to_sign(request, signer.canonical_request(request))
        same = signer.signature(text, request) == given[4] and headers.get("x-amz-security-token") == AWS.token
        return "" if same else "the signature is wrong"


class VertexDouble(AnthropicDouble):
    """Google Vertex with a service account. The double is also the token server, and checks the account."""

    provider = "bestofn.builders.providers.anthropic_clouds.VertexMessages"
    model = "claude-haiku-4-5@20251001"
    settings = {"model": model, "region": "europe-west1"}
    secrets = ("planted-token-of-google-0123456789",)

    def environment(self, url: str, folder: Path) -> dict[str, str]:
        self.key = rsa.generate_private_key(public_exponent=65537, key_size=2048)
        private = self.key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()).decode()
        account = {"type": "service_account", "project_id": "my-project", "private_key_id": "1", "private_key": private}
        account |= {"client_email": "me@my-project.iam.gserviceaccount.com", "token_uri": f"{url}/token"}
        (folder / "google.json").write_text(json.dumps(account))
        files = {"GOOGLE_APPLICATION_CREDENTIALS": str(folder / "google.json")}
        return {"ANTHROPIC_VERTEX_BASE_URL": f"{url}/v1", "GOOGLE_CLOUD_PROJECT": "my-project", **files}

    def token(self, sent: Sent) -> Answer | None:
        if sent.path != "/token":
            return None
        signed = parse_qs(sent.raw.decode())["assertion"][0]
        claims = jwt.decode(signed, self.key.public_key(), ["RS256"], options={"verify_aud": False})
        if claims["scope"] != "https://www.googleapis.com/auth/cloud-platform":
            self.problems.append(f"the scope is {claims['scope']}")
        return Answer({"access_token": self.secrets[0], "expires_in": 3600, "token_type": "Bearer"})

    def problem(self, sent: Sent) -> str:
        place = "/v1/projects/my-project/locations/europe-west1/publishers/anthropic/models"
        if sent.path != f"{place}/{self.model}:rawPredict":
            return f"the path is {sent.path}"
        if sent.headers.get("Authorization") != f"Bearer {self.secrets[0]}":
            return f"the credentials are {sent.headers.get('Authorization')}"
        return self.problem_of_body(sent)


class CompatibleDouble(VertexDouble):
    """An OpenAI-compatible endpoint of Google: Chat Completions with Google's bearer tokens."""

    provider = "bestofn.builders.providers.openai_chat.OpenAIChat"
    settings = {"model": "google/gemini", "bearer": "google"}

    def environment(self, url: str, folder: Path) -> dict[str, str]:
        return {**super().environment(url, folder), "OPENAI_BASE_URL": f"{url}/endpoints/openapi"}

    def problem(self, sent: Sent) -> str:
        if sent.path != "/endpoints/openapi/chat/completions" or sent.body["model"] != "google/gemini":
            return f"the path is {sent.path}, the model {sent.body['model']}"
        given = sent.headers.get("Authorization")
        return "" if given == f"Bearer {self.secrets[0]}" else f"the credentials are {given}"

    def reply(self, question: str, number: int, body: Any) -> Any:
        return chat_reply(question, number, body)


CLOUDS: dict[str, type[CloudDouble]] = {
    "azure key": AzureDouble,
    "azure entra": EntraDouble,
    "bedrock": BedrockDouble,
    "vertex": VertexDouble,
    "compatible": CompatibleDouble,
}
