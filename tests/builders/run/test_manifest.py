"""What a manifest tells of a configuration, and what it does not."""

import pytest

from bestofn.builders.run.manifest import redacted

NAMES = ["api_key", "OPENAI_API_KEY", "x-api-key", "api-key", "Authorization", "aws_secret_access_key", "X-Auth-Token"]


@pytest.mark.parametrize("name", [*NAMES, "password", "credentials", "Cookie"])
def test_secrets_are_left_out_under_whatever_name_a_service_has_for_them(name: str) -> None:
    config = {"provider": {"headers": {name: "sk-1"}, "keys": [{name: ["sk-1"]}], "more": {name: {"value": "sk-1"}}}}
    assert "sk-1" not in str(redacted(config))


def test_all_else_stays() -> None:
    config = {"max_tokens": 5, "token": None, "model": "m", "api_key": "", "stop": ["a"], "headers": {"X-Team": "t"}}
    assert redacted(config) == config
