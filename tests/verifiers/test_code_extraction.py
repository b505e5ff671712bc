"""The program that is extracted from an answer."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bestofn.verifiers.code_verifier.extraction import extract, extract_program
from bestofn.verifiers.code_verifier.fences import fenced, visible_text

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
    assert "flip_case()" in extract_program(answer, "bash")
    assert extract_program(USAGE, "bash") == "chmod +x flip.sh\n./flip.sh Hello\n"


@pytest.mark.parametrize(
    "use",
    [
        "echo -e '3\\n1 2' | ./sum.sh",
        'echo "3\n1 2" | ./sum.sh\n# Output: 6',
        "cat in.txt | bash sum.sh",
        "$ echo 3 | ./sum.sh\n6",
    ],
)
def test_a_block_that_feeds_the_program_is_no_program(use: str) -> None:
    answer = f"```bash\nread n; echo $n\n```\nRun:\n```console\n{use}\n```"
    assert extract_program(answer, "bash") == "read n; echo $n\n"


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


@pytest.mark.parametrize(
    ("language", "blocks"),
    [
        (
            "python",
            [
                "def a(x):\n    return b(x)",
                "def b(x):\n    return LIMIT + x",
                "LIMIT = 3",
                "def f(x):\n    return a(x)",
            ],
        ),
        (
            "javascript",
            ["function a(x) { return b(x); }", "function b(x) { return x; }", "function f(x) { return a(x); }"],
        ),
        ("bash", ["a() { b; }", "b() { echo 1; }", "f() { a; }"]),
    ],
)
def test_a_helper_may_use_a_helper_of_a_later_block(language: str, blocks: list[str]) -> None:
    answer = "\nThen:\n".join(f"```{language}\n{block}\n```" for block in blocks)
    found = extract_program(answer, language, "f", named={"f"})
    assert sorted(found.replace("\n\n", "\n").splitlines()) == sorted("\n".join(blocks).splitlines())


@pytest.mark.parametrize(
    ("before", "program"),
    [
        ("import math", "def f(x):\n    return math.sqrt(x)"),
        ("from heapq import heappush, heappop", "import sys\n\ndef f(x):\n    heappush([], x)"),
        ("MOD = 10**9 + 7\nSIZE: int = 3", "def f(x):\n    return x % MOD + SIZE"),
        ("try:\n    import numpy as np\nexcept ImportError:\n    np = None", "def f(x):\n    return np.sqrt(x)"),
        ("@cache\ndef g(x):\n    return x", "def f(x):\n    return g(x)"),
    ],
)
def test_imports_and_constants_of_another_block_are_kept(before: str, program: str) -> None:
    for answer in (
        f"```python\n{before}\n```\nThen:\n```python\n{program}\n```",
        f"```python\n{program}\n```\nIt needs:\n```python\n{before}\n```",
    ):
        assert extract_program(answer, "python", "f") == f"{before}\n\n{program}\n"


def test_example_data_of_another_block_is_not_taken() -> None:
    example = "```python\nnums = [1, 2]\nprint(f(nums))\n```\n"
    program = "def f(nums):\n    return sum(nums)\n"
    assert extract_program(f"{example}```python\n{program}```", "python", "f") == program
    helper = "```python\ndef g(x):\n    return x\nprint(g(3))\n```\n"
    used = extract_program(f"{helper}```python\nprint(g(int(input())))\n```", "python")
    assert used == "def g(x):\n    return x\n\nprint(g(int(input())))\n"


def test_constants_and_helpers_of_javascript_and_bash_are_kept() -> None:
    script = "```js\nconst { sqrt } = Math;\nfunction gcd(a, b) { return b ? gcd(b, a % b) : a; }\n```\n"
    found = extract_program(f"{script}```js\nfunction f(a, b) {{ return sqrt(gcd(a, b)); }}\n```", "javascript", "f")
    assert found.index("gcd(a, b) {") < found.index("function f")
    bash = "```bash\nLIMIT=3\n```\n```bash\ncount() {\n  echo $(( $1 + LIMIT ))\n}\n```"
    assert extract_program(bash, "bash", named={"count"}).startswith("LIMIT=3\n")
    other = "```js\nfunction f(a) { return 1; }\n```\n```js\nfunction f(a) { return a; }\n```"
    assert extract_program(other, "javascript", "f") == "function f(a) { return a; }\n"


@pytest.mark.parametrize(
    "answer",
    [
        "Here it is: ```python\ndef f(x):\n    return x\n```",
        "```python def f(x):\n    return x\n```",
        "```python\ndef f(x):\n    return x```",
        "1. Solution ```py\ndef f(x):\n    return x\n```\nUse `f`.",
        '```python title="f.py"\ndef f(x):\n    return x\n```',
        "```python\n%matplotlib inline\n!pip install numpy\ndef f(x):\n    return x\n```",
    ],
)
def test_fences_open_and_close_inside_a_line(answer: str) -> None:
    assert extract_program(answer, "python", "f") == "def f(x):\n    return x\n"


def test_a_fence_in_one_line_is_a_block() -> None:
    assert extract_program("Run ```python print(1)``` now.", "python") == "print(1)\n"


@pytest.mark.parametrize(
    "answer",
    [
        "<think>\nDraft:\n```python\ndef f(x):\n    return 0\n```\nHmm, wait",
        "Let me see.\n<thinking>\n```python\ndef f(x):\n    return 0\n```",
    ],
)
def test_drafts_in_thinking_that_never_ends_are_no_answer(answer: str) -> None:
    assert extract_program(answer, "python", "f") == ""


def test_a_tag_inside_a_program_is_not_thinking() -> None:
    answer = '```python\ndef f(x):\n    return x.split("""\n<think>\n""")\n```'
    assert extract_program(answer, "python", "f").endswith('""")\n')


def test_an_answer_that_ends_in_its_program_is_not_complete() -> None:
    assert not extract("```python\ndef f(x):\n    retu", "python", "f").complete
    assert not extract("def f(x):\n    retu", "python", "f").complete
    assert extract("```python\ndef f(x):\n    return x\n```\nIt wor", "python", "f").complete


def test_a_program_inside_a_page_is_found() -> None:
    page = "````markdown\n# Solution\n```python\ndef f(x):\n    return x\n```\n````"
    assert extract_program(page, "python", "f") == "def f(x):\n    return x\n"


def test_a_program_between_prose_is_a_guess() -> None:
    assert extract("You can write:\n\ndef f(x):\n    return x\n\nThis returns the number.", "python", "f").guessed
    assert not extract("def f(x):\n    return x", "python", "f").guessed
    assert not extract("Text.\n```python\ndef f(x):\n    return x\n```\nText.", "python", "f").guessed


def test_a_closing_fence_may_be_followed_by_text() -> None:
    answer = "```python\ndef f(x):\n    return x\n``` This function returns x.\nBye."
    assert extract_program(answer, "python", "f") == "def f(x):\n    return x\n"


def test_a_program_that_reads_input_is_not_replaced_by_its_tests() -> None:
    program = "def main():\n    print(int(input()) * 2)\nmain()\n"
    tests = "import unittest\nclass Test(unittest.TestCase):\n    def test_main(self): ...\n"
    answer = f"```python\n{program}```\nTests:\n```python\n{tests}```"
    assert extract_program(answer, "python") == program


@pytest.mark.parametrize(
    ("module", "script"),
    [
        ("export default function f(x) { return x; }", "function f(x) { return x; }\n"),
        ("export const f = (x) => x;", "const f = (x) => x;\n"),
        ("function f(x) { return x; }\nexport default f;", "function f(x) { return x; }\n"),
        ("function f(x) { return x; }\nexport { f, g as h };", "function f(x) { return x; }\n"),
        ("export default (x) => x;", "const f = (x) => x;\n"),
        ("export default async function (x) { return x; }", "const f = async function (x) { return x; }\n"),
        ("module.exports = (x) => x;", "const f = module.exports = (x) => x;\n"),
        (
            "module.exports = async function (x) { return x; };",
            "const f = module.exports = async function (x) { return x; };",
        ),
        ("const f = (x) => x;\nmodule.exports = () => f;", "const f = (x) => x;\nmodule.exports = () => f;"),
        ("import fs from 'fs';\nexport class f {}", "const fs = require('fs');\nclass f {}\n"),
        ("import { a as b, c } from 'm';\nexport let f = b", "const { a: b, c } = require('m');\nlet f = b\n"),
    ],
)
def test_a_module_becomes_a_script(module: str, script: str) -> None:
    assert extract_program(f"```js\n{module}\n```", "javascript", "f").strip() == script.strip()


@pytest.mark.parametrize(
    ("typed", "plain"),
    [
        ("function f(x: number, y?: string[]): number { return x; }", "function f(x, y) { return x; }"),
        ("const f = (x: number): number => x;", "const f = (x) => x;"),
        ("const seen: Map<string, number> = new Map<string, number>();", "const seen = new Map();"),
        (
            "interface P { a: number }\nfunction f(p: P): number { return p.a as number; }",
            "function f(p) { return p.a; }",
        ),
        ("type Id = string | number;\nlet a: Id = 1;", "let a = 1;"),
        ("function f<T>(xs: T[]): T | undefined { return xs[0]!; }", "function f(xs) { return xs[0]; }"),
        ("class A {\n  private n: number = 1;\n  f(x: number): void {}\n}", "class A {\n  n = 1;\n  f(x) {}\n}"),
    ],
)
def test_types_are_removed_and_the_program_is_marked(typed: str, plain: str) -> None:
    found = extract(f"```typescript\n{typed}\n```", "javascript", "f")
    assert found.typed
    assert found.source.strip() == plain
    assert extract(f"```js\n{typed}\n```", "javascript", "f").typed


@pytest.mark.parametrize(
    "source",
    [
        "const f = (x) => ({ value: number, name: null });",
        "const f = (x) => (x ? (a) : b);",
        "function f(x) { switch (x) { case (1): { return 'as any: number'; } default: return 2; } }",
        "function f(x = { a: 1 }) { return x; } // as any, (x: number)",
        "label: for (;;) break label;",
    ],
)
def test_plain_javascript_is_not_typescript(source: str) -> None:
    found = extract(f"```js\n{source}\n```", "javascript", "f")
    assert (found.typed, found.source.strip()) == (False, source)


@given(st.text(alphabet="`~ \nabc>$def(:)", max_size=80), st.sampled_from(["python", "javascript", "bash", "sql"]))
def test_any_text_is_read(text: str, language: str) -> None:
    assert isinstance(extract_program(text, language, "f"), str)
    assert all(block.text is not None for block in fenced(text))


@pytest.mark.parametrize("mark", ['"""', "'''"])
@pytest.mark.parametrize("tag", ["", "python"])
def test_a_fence_in_a_docstring_does_not_end_the_program(mark: str, tag: str) -> None:
    program = f"def f(x):\n    {mark}Adds.\n\n    ```{tag}\n    f(1)\n    ```\n    {mark}\n    return x + 1\n"
    assert extract_program(f"Here:\n```python\n{program}```\nIt adds one.", "python", "f") == program


@pytest.mark.parametrize(
    "words",
    [
        "A common mistake is:",
        "Do NOT write it like this:",
        "For reference, the original version was:",
        "A slower alternative, which would time out:",
    ],
)
def test_another_program_after_the_program_is_a_guess(words: str) -> None:
    right, other = "```python\ndef f(x):\n    return x + 1\n```\n", "```python\ndef f(x):\n    return x - 1\n```"
    assert extract(f"{right}{words}\n{other}", "python", "f").guessed
    assert not extract(f"{right}Here is the final version:\n{other}", "python", "f").guessed
    assert not extract(f"{words}\n{other}\nThe program is:\n{right}", "python", "f").guessed


def test_another_program_that_reads_input_is_a_guess() -> None:
    answer = "```python\nprint(int(input()) + 1)\n```\nA slower version:\n```python\nprint(sum([int(input()), 1]))\n```"
    assert extract(answer, "python").guessed


@pytest.mark.parametrize(
    "part",
    [
        "a ",
        "`",
        "~",
        "``` ",
        "```python ",
        "```python\t \t",
        "<think>",
        "<code>",
        "<code ",
        '\'"""',
        " ",
        "`a",
        "<think>\n",
    ],
    ids=repr,
)
@pytest.mark.parametrize("before", ["", "```\n"], ids=["text", "block"])
def test_long_lines_take_time_in_proportion_to_their_length(part: str, before: str) -> None:
    """The extraction time is linear in the length. In quadratic time, each of these answers would take minutes."""
    extract(before + part * (200_000 // len(part)) + "`", "python", "f")


@pytest.mark.parametrize(
    ("answer", "visible"),
    [
        ("<think>a</think>b", "b"),
        ("<Think>a</THINK>b<reasoning>c</reasoning>d", "bd"),
        ("a<think>b", "a<think>b"),
        ("<reasoning>a<think>b</think>c", ""),
    ],
)
def test_thinking_is_removed_with_its_end(answer: str, visible: str) -> None:
    assert visible_text(answer) == visible
