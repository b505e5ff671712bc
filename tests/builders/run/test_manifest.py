"""The parts of a configuration that the manifest omits."""

import pytest

from bestofn.builders.run.manifest import redacted

NAMES = ["api_key", "OPENAI_API_KEY", "x-api-key", "api-key", "Authorization", "aws_secret_access_key", "X-Auth-Token"]


@pytest.mark.parametrize("name", [*NAMES, "password", "credentials", "Cookie"])
def test_secrets_are_redacted_under_all_names_that_services_use(name: str) -> None:
    config = {"provider": {"headers": {name: "sk-1"}, "keys": [{name: ["sk-1"]}], "more": {name: {"value": "sk-1"}}}}
    assert "sk-1" not in str(redacted(config))


def test_all_other_settings_are_kept() -> None:
    config = {"max_tokens": 5, "token": None, "model": "m", "api_key": "", "stop": ["a"], "headers": {"X-Team": "t"}}
    assert redacted(config) == config
