"""Request bodies have the types of the SDKs, so pyright reports a wrong field, a wrong value and a missing field."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from bestofn.builders.providers import anthropic_messages, openai_chat, openai_responses
from tests.requirements import need

PLANTED = [  # module, text of the request body, wrong text, what pyright says about it
    (openai_chat, '"top_p": sampling', '"topp": sampling', '"topp" is an undefined item'),
    (openai_chat, '"type": "json_schema", ', '"type": "json_scheme", ', 'is not assignable to type "ResponseFormat"'),
    (openai_responses, '"max_output_tokens": sampling', '"max_tokens": sampling', '"max_tokens" is an undefined item'),
    (openai_responses, '"store": False', '"store": "no"', "\"Literal['no']\" is not assignable"),
    (anthropic_messages, 'body["stop_sequences"]', 'body["stop"]', '"stop" is not a defined key'),
    (
        anthropic_messages,
        '"budget_tokens": budget',
        '"budget": budget',
        'is not assignable to "ThinkingConfigEnabledParam"',
    ),
]


@pytest.mark.slow
def test_pyright_reports_planted_wrong_fields(tmp_path: Path) -> None:
    need("node")  # pyright would download it
    for number, (module, right, wrong, _) in enumerate(PLANTED):
        source = Path(str(module.__file__)).read_text("utf-8")
        assert source.count(right) == 1
        (tmp_path / f"planted_{number}.py").write_text(source.replace(right, wrong), "utf-8")
    for module in (openai_chat, openai_responses, anthropic_messages):
        (tmp_path / Path(str(module.__file__)).name).write_bytes(Path(str(module.__file__)).read_bytes())
    words = [sys.executable, "-m", "pyright", "--outputjson", "--pythonpath", sys.executable, str(tmp_path)]
    found = json.loads(subprocess.run(words, capture_output=True, text=True, check=False).stdout)
    errors = {f"planted_{number}": "" for number in range(len(PLANTED))}
    for one in found["generalDiagnostics"]:
        name = Path(one["file"]).stem
        assert name in errors, f"the real module {name} has an error: {one['message']}"
        errors[name] += one["message"]
    for number, (*_, message) in enumerate(PLANTED):
        assert message in errors[f"planted_{number}"], errors[f"planted_{number}"]
