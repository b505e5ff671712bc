"""The identity of a provider, a part of every journal key, contains no credential and distinguishes servers."""

import pytest

from bestofn.builders.providers.anthropic_messages import AnthropicMessages
from bestofn.builders.providers.ollama import Ollama
from bestofn.builders.providers.openai_chat import OpenAIChat


def identity(base_url: str = "http://h:8000/v1", **settings) -> str:
    return OpenAIChat(model="m", base_url=base_url, **settings).identity


def test_the_identity_of_usual_settings_has_its_stored_value() -> None:
    assert identity() == "openai_chat http://h:8000/v1 m"
    assert OpenAIChat(model="m", base_url="https://api.openai.com/v1").identity == (
        "openai_chat https://api.openai.com/v1 m"
    )
    assert Ollama(model="m", base_url="localhost:11434").identity == "ollama http://localhost:11434 m"
    assert AnthropicMessages(model="c", thinking="adaptive").identity == (
        "anthropic_messages https://api.anthropic.com c thinking=adaptive"
    )
    assert identity(extra_headers={"X-Variant": "a"}) == "openai_chat http://h:8000/v1 m headers=d9a17539c078"


@pytest.mark.parametrize(
    "settings",
    [
        {"api_key": "another-key-1"},
        {"extra_headers": {"Authorization": "Bearer another"}},
        {"extra_headers": {"Ocp-Apim-Subscription-Key": "another"}},
        {"extra_headers": {"Helicone-Auth": "another"}},
        {"extra_headers": {"X-Custom": "sk-aB3dE5fG7hI9jK1lM3nO5"}},
        {"base_url": "http://user:another@h:8000/v1"},
        {"base_url": "http://h:8000/v1?api-key=another"},
        {"base_url": "HTTP://H:8000/v1/"},
    ],
)
def test_another_credential_or_spelling_gives_the_same_identity(settings: dict) -> None:
    assert identity(**settings) == identity()


def test_headers_ports_and_models_that_change_completions_change_the_identity() -> None:
    others = [
        identity("http://h:8001/v1"),
        identity(extra_headers={"X-Variant": "a"}),
        identity(extra_headers={"X-Variant": "b"}),
        identity("http://h:8000/v1?deployment=x"),
        identity(service="my-cluster"),
    ]
    assert len({identity(), *others}) == len(others) + 1


def test_a_named_service_is_found_after_it_has_moved() -> None:
    assert identity(service="my-cluster") == identity("https://elsewhere/v1", service="my-cluster")
    assert identity(service="my-cluster") == "openai_chat my-cluster m"
    with pytest.raises(ValueError, match="expected a name of letters"):
        identity(service="http://h:1")


def test_messages_show_the_url_without_its_credentials() -> None:
    provider = OpenAIChat(model="m", base_url="http://me:secret@h:8000/v1?api-key=abc&api-version=1")
    assert provider.base_url == "http://h:8000/v1?api-key=***&api-version=1"
