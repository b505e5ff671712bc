"""The program that is extracted from an answer."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bestofn.verifiers.code_verifier.extraction import extract_program, fenced

USAGE = "Save it, then run:\n\n```bash\nchmod +x flip.sh\n./flip.sh Hello\n```\n"


@pytest.mark.parametrize(
    ("answer", "language", "entry", "expected"),
    [
        ("```python\ndef f(x):\n    return x\n```", "python", "f", "def f(x):\n    return x\n"),
        ("<think>```python\nwrong\n```</think>```py\nx = 1\n```", "python", "", "x = 1\n"),
        ("def f(x):\n    return x", "python", "f", "def f(x):\n    return x\n"),
        (
            "```python\ndef f(x):\n    return x\n```\nIt prints:\n```\n1\n```",
            "python",
            "f",
            "def f(x):\n    return x\n",
        ),
        (
            "```python\ndef f():\n    return 1\n```\n```python\nprint(f())\n```",
            "python",
            "f",
            "def f():\n    return 1\n",
        ),
        ("```python\nimport sys\nprint(sys.stdin.read())", "python", "", "import sys\nprint(sys.stdin.read())\n"),
        ("~~~python\nx = 1\n~~~", "python", "", "x = 1\n"),
        ("```java\nint x;\n```", "python", "", ""),
        (">>> ", "python", "", ""),
        ("```python\n>>> x = 1\n>>> print(x)\n1\n```", "python", "", "x = 1\nprint(x)\n"),
        ("<code>print(1)</code>", "python", "", "print(1)\n"),
        ("```sql\nSELECT 1;\n```", "sql", "", "SELECT 1;\n"),
        ("No program here.", "python", "", ""),
        ("", "bash", "", ""),
    ],
)
def test_the_program_is_found(answer: str, language: str, entry: str, expected: str) -> None:
    assert extract_program(answer, language, entry) == expected


def test_names_of_the_tests_tell_the_program_from_its_use() -> None:
    answer = f'```bash\nflip_case() {{ tr a-zA-Z A-Za-z <<< "$1"; }}\n```\n{USAGE}'
    assert "flip_case()" in extract_program(answer, "bash", named={"candidate", "flip_case"})
    assert "flip_case()" not in extract_program(answer, "bash")


def test_a_body_keeps_its_indentation_and_a_program_does_not() -> None:
    body = "```python\n    import re\n    return re.findall('x', text)\n```"
    assert extract_program(body, "python", "f").startswith("    import re")
    inner = "```python\n    def g(x):\n        return x\n    return g(text)\n```"
    assert extract_program(inner, "python", "f").startswith("    def g(x):")
    program = "```python\n    import re\n    def f(text):\n        return re.findall('x', text)\n```"
    assert extract_program(program, "python", "f").startswith("import re\ndef f(text):")


def test_helpers_of_earlier_blocks_come_along() -> None:
    answer = (
        "```python\ndef square(x):\n    return x * x\n```\nThen:\n```python\ndef f(x):\n    return square(x) + 1\n```"
    )
    found = extract_program(answer, "python", "f")
    assert found.index("def square") < found.index("def f")


@given(st.text(alphabet="`~ \nabc>$def(:)", max_size=80), st.sampled_from(["python", "javascript", "bash", "sql"]))
def test_any_text_is_read(text: str, language: str) -> None:
    assert isinstance(extract_program(text, language, "f"), str)
    assert all(block.text is not None for block in fenced(text))
