"""Messages of the functions of Python name arguments of Python, and no words of a shell."""

from __future__ import annotations

from pathlib import Path

import pytest

import bestofn
from bestofn.builders.api.python_messages import in_python
from bestofn.builders.errors import ConfigError
from bestofn.builders.sampling.cost import price_setting


@pytest.mark.parametrize(
    ("message", "said"),
    [
        ("To replace them: overwrite=true", "To replace them: overwrite=True"),
        ("Set sampling.max_tokens=64.", 'Set sampling={"max_tokens": 64}.'),
        ("with judge, for example judge=openai.", 'with judge, for example judge="openai".'),
        ("Set dataset.columns.response=COLUMN, and", 'Set columns={"response": "COLUMN"}, and'),
        ("n=null reads all", "n=None reads all"),
        ("stages.generate.greedy=true", 'stages={"generate": {"greedy": True}}'),
        ("see https://x.org/?a=b and x == y", "see https://x.org/?a=b and x == y"),
    ],
)
def test_words_become_arguments(message: str, said: str) -> None:
    assert in_python(message) == said


def test_a_price_is_a_dict() -> None:
    assert in_python(price_setting("gpt-x")) == 'prices={"gpt-x": {"input": 1.0, "output": 4.0}}'


def test_functions_speak_of_arguments(tmp_path: Path) -> None:
    rows = [{"question": "1 + 1?", "answer": "2"}]
    with pytest.raises(ConfigError) as raised:
        bestofn.build(rows, "recorded", sandbox="none", tools="none", out=tmp_path / "run")
    assert 'columns={"response": "COLUMN"}' in str(raised.value)
    done = [{"question": "1 + 1?", "reference": "2", "response": "2", "verification_status": "pass"}]
    with pytest.raises(ConfigError, match="overwrite=True"):
        bestofn.verify_dataset(done, workers=0, sandbox="none")
