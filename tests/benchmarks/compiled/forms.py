"""Writes the tests of a task in the forms that are usual in each language.

The first form of a language is that of HumanEvalPack, which does not have TypeScript. The second is that of MultiPL-E.
Some languages have a third form: a test file as users write it.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

from tests.benchmarks.compiled.values import literal, type_name

Cases = list[tuple[list[str], str]]
"""The arguments and the result of each case as literals."""


def function_name(language: str, task: str) -> str:
    """Return the name of the function in the style of the language: ``sum_even``, ``sumEven`` or ``SumEven``."""
    if language in ("rust", "cpp"):
        return task
    camel = re.sub(r"_(\w)", lambda found: found[1].upper(), task)
    return camel[0].upper() + camel[1:] if language == "go" else camel


def tests_of(language: str, number: int, task: str, types: list[Any], cases: list[list[Any]]) -> str:
    """Return the source of the tests of a task. ``number`` selects the form."""
    forms = FORMS[language]
    written = [[literal(language, kind, value) for kind, value in zip(types, case, strict=True)] for case in cases]
    form = forms[number % len(forms)]
    return form(function_name(language, task), types, [(arguments, wanted) for *arguments, wanted in written])


def _joined(cases: Cases, line: str) -> str:
    """Return a copy of ``line`` per case, with the arguments in place of ``@A@`` and the result in place of ``@W@``."""
    return "".join(line.replace("@A@", ", ".join(given)).replace("@W@", wanted) for given, wanted in cases)


def _go_testify(name: str, types: list[Any], cases: Cases) -> str:
    lines = _joined(cases, f"    assert.Equal(@W@, {name}(@A@))\n")
    return f"func Test{name}(t *testing.T) {{\n    assert := assert.New(t)\n{lines}}}\n"


def _go_table(name: str, types: list[Any], cases: Cases) -> str:
    lines = _joined(cases, "        {actual: candidate(@A@), expected: @W@},\n")
    kind = type_name("go", types[-1])
    return (
        f'import (\n    "testing"\n    "fmt"\n    "reflect"\n)\n\nfunc Test{name}(t *testing.T) {{\n    candidate := {name}\n'
        f"    type test struct {{\n        actual   {kind}\n        expected {kind}\n    }}\n    tests := []test{{\n{lines}"
        '    }\n\n    for i, tc := range tests {\n        t.Run(fmt.Sprintf("test num % d", i), func(t *testing.T) {\n'
        "            if !reflect.DeepEqual(tc.actual, tc.expected) {\n"
        "                t.Errorf(\"expected '%s', got '%s'\", tc.expected, tc.actual)\n            }\n"
        "        })\n    }\n}\n"
    )


def _rust_module(name: str, types: list[Any], cases: Cases) -> str:
    lines = _joined(cases, f"        assert_eq!({name}(@A@), @W@);\n")
    return f"\n#[cfg(test)]\nmod tests {{\n    use super::*;\n\n    #[test]\n    fn test_{name}() {{\n{lines}    }}\n\n}}\n"


def _rust_main(name: str, types: list[Any], cases: Cases) -> str:
    return f"fn main() {{\n    let candidate = {name};\n{_joined(cases, '    assert_eq!(candidate(@A@), @W@);' + chr(10))}}}\n"


def _rust_check(name: str, types: list[Any], cases: Cases) -> str:
    lines = _joined(cases, f"    assert!({name}(@A@) == @W@);\n")
    return f"#[test]\nfn {name}_works() {{\n{lines}}}\n\n#[test]\nfn again() {{ {name}_works() }}\n"


def _cpp_assert(name: str, types: list[Any], cases: Cases) -> str:
    lines = _joined(cases, f"    assert ({name}(@A@) == (@W@));\n")
    return f"#undef NDEBUG\n#include<assert.h>\nint main(){{\n{lines}}}\n"


def _cpp_candidate(name: str, types: list[Any], cases: Cases) -> str:
    lines = _joined(cases, "    assert(candidate(@A@) == (@W@));\n")
    return f"int main() {{\n    auto candidate = {name};\n{lines}}}\n"


def _java_main(name: str, types: list[Any], cases: Cases) -> str:
    line = f"                Objects.equals(s.{name}(@A@), @W@),\n"
    return (
        "public class Main {\n    public static void main(String[] args) {\n        Solution s = new Solution();\n"
        f"        List<Boolean> correct = Arrays.asList(\n{_joined(cases, line).rstrip().rstrip(',')}\n        );\n"
        "        if (correct.contains(false)) {\n            throw new AssertionError();\n        }\n    }\n}"
    )


def _java_assert(name: str, types: list[Any], cases: Cases) -> str:
    equal = (
        f"new Solution().{name}(@A@) == @W@"
        if types[-1] in ("int", "bool")
        else f"new Solution().{name}(@A@).equals(@W@)"
    )
    equal = f"Math.abs(new Solution().{name}(@A@) - @W@) < 1e-6" if types[-1] == "float" else equal
    lines = _joined(cases, f"        assert({equal});\n")
    return f"import java.util.*;\n\nclass Main {{\n    public static void main(String[] args) {{\n{lines}    }}\n\n}}\n"


def _java_statements(name: str, types: list[Any], cases: Cases) -> str:
    return _joined(cases, f'if (!Objects.equals(new Solution().{name}(@A@), @W@)) throw new AssertionError("wrong");\n')


def _typescript_assert(name: str, types: list[Any], cases: Cases) -> str:
    lines = _joined(cases, "  assert.deepEqual(candidate(@A@),@W@);\n")
    return (
        "declare var require: any;\nconst assert = require('node:assert');\n\n"
        f"function test() {{\n  let candidate = {name};\n{lines}}}\n\ntest();\n"
    )


def _typescript_expect(name: str, types: list[Any], cases: Cases) -> str:
    lines = _joined(cases, f"  it('works', () => {{ expect({name}(@A@)).toEqual(@W@); }});\n")
    return f"describe('{name}', () => {{\n{lines}}});\n"


def _typescript_console(name: str, types: list[Any], cases: Cases) -> str:
    lines = _joined(cases, f"  console.assert(JSON.stringify({name}(@A@)) === JSON.stringify(@W@));\n")
    return f"const test{name} = (): void => {{\n{lines}}};\n\ntest{name}();\n"


FORMS: dict[str, tuple[Callable[[str, list[Any], Cases], str], ...]] = {
    "typescript": (_typescript_assert, _typescript_expect, _typescript_console),
    "cpp": (_cpp_assert, _cpp_candidate),
    "go": (_go_testify, _go_table),
    "rust": (_rust_module, _rust_main, _rust_check),
    "java": (_java_main, _java_assert, _java_statements),
}
