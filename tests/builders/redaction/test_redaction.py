"""Credentials in settings, URLs, headers and texts are masked, and all other text is unchanged."""

import json
import logging
import sys
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bestofn.builders.redaction import secrets
from bestofn.builders.redaction.credentials import keys_in, masked_key_like, masked_keys
from bestofn.builders.redaction.secrets import (
    redacted,
    redacted_message,
    redacted_override,
    redacted_text,
    remember,
    without_known,
)
from bestofn.builders.redaction.urls import address_of, credentials_in, is_local, with_path, without_credentials

NAMES = ["api_key", "OPENAI_API_KEY", "x-api-key", "api-key", "Authorization", "aws_secret_access_key", "X-Auth-Token"]
KEYS = [
    "sk-proj-aB3dE5fG7hI9jK1lM3nO5",
    "sk-ant-api03-Zx9Yw8Vu7Ts6Rq5Po4",
    "hf_aBcDeFgHiJkLmNoPqRsT12345",
    "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",
    "ghp_16C7e42F292c6912E7710c838347Ae178B4a",
    "github_pat_11ABCDEFG0a1b2c3d4e5f6",
    "glpat-aB3dE5fG7hI9jK1lM3nO",
    "AKIA3X7QZ5LM2NB8WCDV",
    "AIzaSyA1b2C3d4E5f6G7h8I9j0K1l2M3n4O5p6Q",
    "gsk_a1B2c3D4e5F6g7H8i9J0k1L2",
    "xoxb-123456789012-aBcDeFgHiJkL",
    "Bearer a1b2c3d4e5f6g7h8i9",
    "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0NTY3ODkwIn0.dozjgNryP4J3jVmNHl0w5N",
]
PLAIN = [
    "sk-estimator-doc-link-wrapper",
    "the key_variable of the provider",
    "AKIAIOSFODNN7EXAMPLE",
    "sk-xxxxxxxxxxxxxxxxxxxxxxxx",
    "Basic understanding of programs",
    "hf_internal_testing/tiny-random-model",
    "hf_pretrainedmodelswithlongnamesinlowercase",
    "datasets/sk-nlp-corpus-2024.jsonl",
    "The answer is 42.",
]


@pytest.fixture(autouse=True)
def _forget(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(secrets, "_remembered", ())


@pytest.mark.parametrize("name", [*NAMES, "password", "credentials", "Cookie", "Ocp-Apim-Subscription-Key"])
def test_secrets_are_redacted_under_all_names_that_services_use(name: str) -> None:
    config = {"provider": {"headers": {name: "sk-1"}, "keys": [{name: ["sk-1"]}], "more": {name: {"value": "sk-1"}}}}
    assert "sk-1" not in str(redacted(config))


def test_the_values_of_all_headers_are_secret_unless_listed() -> None:
    headers = {"Helicone-Auth": "a", "X-Team": "b", "Content-Type": "c", "X-Title": "d", "Empty": ""}
    assert redacted({"headers": headers, "extra_headers": {"X": "y"}}) == {
        "headers": {"Helicone-Auth": "***", "X-Team": "***", "Content-Type": "c", "X-Title": "d", "Empty": ""},
        "extra_headers": {"X": "***"},
    }
    assert redacted({"headers": "X-Key: hunter2"}) == {"headers": "***"}


def test_all_other_settings_are_kept() -> None:
    config = {"max_tokens": 5, "token": None, "model": "m", "api_key": "", "stop": ["a"], "eos_token": "</s>", "n": 4}
    assert redacted(config) == config


@pytest.mark.parametrize("key", KEYS)
def test_keys_are_found_by_their_shape_in_any_text(key: str) -> None:
    for text in (key, f"export KEY={key};", json.dumps(f"line\n{key}\tend"), f'{{"error": "{key}"}}'):
        assert any(found in text for _, found in keys_in(text)), text
        assert key not in masked_keys(text)
    assert key not in str(redacted({"notes": f"my key is {key}."}))


@pytest.mark.parametrize("text", PLAIN)
def test_ordinary_text_is_no_key(text: str) -> None:
    assert list(keys_in(text)) == []
    assert redacted_text(text) == text


def test_messages_of_services_lose_also_short_keys() -> None:
    assert masked_key_like("Incorrect API key provided: sk-abcdefgh.") == "Incorrect API key provided: ***."
    assert masked_key_like("got Authorization: Bearer abcdefgh") == "got Authorization: ***"


def test_urls_lose_their_user_and_their_secret_parameters() -> None:
    text = "failed: https://me:p%40ss@h.example:8/v1?api-version=2024&api-key=abc&sig=x%2By then http://tok@h/v1"
    shown = "failed: https://h.example:8/v1?api-version=2024&api-key=***&sig=*** then http://h/v1"
    assert without_credentials(text) == shown
    assert "p%40ss" not in redacted_text(text)
    assert set(credentials_in("https://me:p%40ss@h/v1?key=abc&x=1")) == {"p%40ss", "p@ss", "me:p@ss", "abc"}
    assert redacted({"base_url": "http://u:pw@h/v1"}) == {"base_url": "http://h/v1"}


def test_a_repository_with_a_revision_is_no_url_with_a_user() -> None:
    assert without_credentials("hf://datasets/me/sums@main/a.parquet") == "hf://datasets/me/sums@main/a.parquet"


SAME = [
    ("http://127.0.0.1:8000/v1", "http://localhost:8000/v1/"),
    ("HTTPS://API.Example.com:443/v1", "https://api.example.com/v1"),
    ("http://me:pw@h/v1?key=a", "http://h/v1?key=b"),
    ("http://[::1]:80/v1", "http://localhost/v1"),
]
DIFFERENT = [
    ("http://localhost:8000/v1", "http://localhost:8001/v1"),
    ("http://h/v1", "https://h/v1"),
    ("http://h/v1", "http://h/V1"),
    ("http://h/v1?api-version=1", "http://h/v1?api-version=2"),
]


@pytest.mark.parametrize(("one", "other"), SAME)
def test_spellings_of_one_address_are_equal(one: str, other: str) -> None:
    assert address_of(one) == address_of(other)


@pytest.mark.parametrize(("one", "other"), DIFFERENT)
def test_other_addresses_differ(one: str, other: str) -> None:
    assert address_of(one) != address_of(other)


@given(st.text())
def test_any_text_is_accepted_as_a_url(text: str) -> None:
    assert address_of(address_of(text)) == address_of(text)
    is_local(text)
    list(credentials_in(text))
    redacted_text(text)


PIECES = st.sampled_from(
    [
        "\\n",
        "\n",
        "\\",
        '"',
        " ",
        "Bearer abcdef1234567890ABC",
        "sk-abcdefghij1234567890",
        "http://u:p@h",
        "?token=abc12345",
    ]
)


@pytest.mark.parametrize("redact", [redacted_text, redacted_message])
@given(st.lists(PIECES, max_size=6).map("".join))
def test_json_text_is_json_after_redaction(redact: Callable[[str], str], text: str) -> None:
    json.loads(redact(json.dumps([text, text])))
    assert "abcdef1234567890" not in redact(json.dumps(["\nBearer abcdef1234567890ABC"]))


def test_a_path_is_added_before_the_query() -> None:
    assert with_path("http://h/v1/", "/files") == "http://h/v1/files"
    assert with_path("http://h/v1?api-version=1", "/files") == "http://h/v1/files?api-version=1"
    assert with_path("http://h/v1?a=1", "/batches?limit=2") == "http://h/v1/batches?limit=2&a=1"


def test_remembered_values_are_masked_in_every_spelling() -> None:
    remember(["Bearer correct/horse/battery/1", "hunter2-hunter2"])
    text = "correct/horse/battery/1 correct\\/horse\\/battery\\/1 correct%2Fhorse%2Fbattery%2F1 hunter2-hunter2"
    assert without_known(text) == "*** *** *** ***"


def test_a_credential_is_masked_while_others_are_remembered(monkeypatch: pytest.MonkeyPatch) -> None:
    masked = []

    class Watched(str):
        """A credential that masks a text while ``remember`` sorts it."""

        def __len__(self) -> int:
            masked.append(redacted_text("sent first-secret-of-a-thread-1"))
            return super().__len__()

    remember(["first-secret-of-a-thread-1"])
    monkeypatch.setattr(secrets, "_spellings", lambda secret: {Watched(secret)})
    remember(["second-secret-of-a-thread-2"])
    assert masked == ["sent ***"]
    assert redacted_text("second-secret-of-a-thread-2") == "***"


def test_ordinary_words_are_not_remembered() -> None:
    remember(["EMPTY", "lm-studio", "ollama", "none", "", "password"])
    assert secrets.remembered() == []


def test_the_credentials_in_a_configuration_are_remembered() -> None:
    secrets.remember_config(
        {
            "a": {"api_key": "k1-abcdefgh", "headers": {"X": "h1-abcdefgh", "X-Title": "t1-abcdefgh"}},
            "b": [{"url": "http://u:p1-abcdefgh@h/?token=q1-abcdefgh"}],
        }
    )
    for one in ("k1", "h1", "p1", "q1"):
        assert f"{one}-abcdefgh" in secrets.remembered()
    assert "t1-abcdefgh" not in secrets.remembered()


def test_credentials_in_overrides_are_masked() -> None:
    assert redacted_override("provider.api_key=abc") == "provider.api_key=***"
    assert redacted_override("+provider.extra_headers={X: abc}") == "+provider.extra_headers=***"
    assert redacted_override("provider.extra_headers.X-Auth=abc") == "provider.extra_headers.X-Auth=***"
    assert redacted_override("provider.base_url=http://u:p@h/v1") == "provider.base_url=http://h/v1"
    assert redacted_override("n=4") == "n=4"


class OwnFormat(logging.Handler):
    """Prints an exception in a format of its own, as the handlers of some libraries do."""

    def emit(self, record: logging.LogRecord) -> None:
        if record.exc_info:
            print("failed:", record.exc_info[1], file=sys.stderr)


def test_log_records_and_tracebacks_are_masked(
    caplog: pytest.LogCaptureFixture, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Credentials are masked in log records and tracebacks, also if a library's handler prints the exception itself."""
    monkeypatch.setenv("SOME_TOKEN", "t0k3n-of-the-environment")
    monkeypatch.setattr(logging.getLogger(), "handlers", [*logging.getLogger().handlers, OwnFormat()])
    before = logging.getLogRecordFactory()
    hooks = secrets.sys.excepthook, secrets.threading.excepthook
    try:
        secrets.redact_output(["provider.api_key=typed-on-the-command-line-1"])
        try:
            raise ValueError("refused: typed-on-the-command-line-1")
        except ValueError as error:
            logging.getLogger("any").exception("key %s of %d", "t0k3n-of-the-environment", 3)
            secrets.sys.excepthook(ValueError, error, error.__traceback__)
    finally:
        logging.setLogRecordFactory(before)
        secrets.sys.excepthook, secrets.threading.excepthook = hooks
    shown = caplog.text + capsys.readouterr().err
    assert "key *** of 3" in shown
    assert "ValueError: refused: ***" in shown
    assert "t0k3n" not in shown
    assert "typed-on" not in shown
