"""Assertions of JavaScript that this process decides (``javascript_values``) are decided as Node decides them."""

from __future__ import annotations

import asyncio
from itertools import product

import pytest

from bestofn.builders.records import Execution, Limits, Program
from bestofn.sandbox.local_sandbox import LocalSandbox
from bestofn.verifiers.code_verifier.javascript_values import JavascriptScript
from bestofn.verifiers.code_verifier.values import NotValues
from tests.requirements import need

IDENTITY = "const f = (x) => x;"
VALUES = (
    "0", "-0", "1", "1.5", "1e21", "1e-7", "123456789012345680000", "NaN", "'1'", "''", "'é\\n\\u{1F600}'", "true", "false",
    "null", "undefined", "[]", "[1, '1', [null]]", "[1]", "{}", "{a: 1, b: [2]}", "{b: [2], a: 1}", "{a: undefined}",
    "{2: 'x', 1: 'y', a: null}",
)  # fmt: skip
FORMS = (
    "assert.equal(f({0}), {1})", "assert.notEqual(f({0}), {1})", "assert.strictEqual(f({0}), {1})",
    "assert.deepEqual(f({0}), {1})", "assert.notDeepEqual(f({0}), {1})", "assert.deepStrictEqual(f({0}), {1})",
    "expect(f({0})).toBe({1})", "expect(f({0})).toEqual({1})", "expect(f({0})).not.toStrictEqual({1})",
    "expect([f({0})]).toContain({1})", "expect([f({0})]).toContainEqual({1})",
    "console.assert(f({0}) === {1})", "assert(f({0}) != {1})",
    "assert.equal(JSON.stringify(f({0})), JSON.stringify({1}))", "assert.equal(`${{f({0})}}`, `${{{1}}}`)",
    "if (f({0}) !== {1}) throw new Error('other')",
)  # fmt: skip


def decided(source: str) -> bool | None:
    """Return whether this process lets the test pass with a function that returns its argument; None if it cannot tell."""
    driven = Program("javascript", IDENTITY, tests=(source,))
    try:
        (call,) = JavascriptScript(driven).collect()
        execution = Execution("ok", 0, "", "", 0.0, returns=({"value": call["args"][0]},))
        return JavascriptScript(driven).decide(execution) == [None]
    except NotValues:
        return None


@pytest.mark.sandbox
def test_assertions_are_decided_as_node_decides_them() -> None:
    need("node")
    sources = [form.format(*pair) for form in FORMS for pair in product(VALUES, VALUES)]
    here = {source: said for source in sources if (said := decided(source)) is not None}

    async def there() -> dict[str, bool]:
        async with LocalSandbox(workers=1) as sandbox:
            limits = Limits(wall_s=120, cpu_s=120)
            execution = await sandbox.run(Program("javascript", IDENTITY, tests=tuple(here), limits=limits))
            returns = execution.returns or (execution.packed.decode() if execution.packed else ())
            return {source: answer["passed"] is True for source, answer in zip(here, returns, strict=True)}

    assert len(here) > len(sources) / 2
    assert here == asyncio.run(there())


@pytest.mark.parametrize(
    "source",
    [
        "assert.throws(() => f(1))",
        "assert.deepEqual(f(new Map()), new Map())",
        "const x = f(1); x.sort(); assert.deepEqual(x, [1])",
        "assert.deepEqual(f([1, , 2]), [1, , 2])",
        "const s = new Stack(); s.push(1); assert.equal(s.size, 1)",
        "for (const x of f(3)) assert(x > 0)",
        "test('later', (done) => f(1, done))",
        "assert(f(Math.random()) < 1)",
        "assert.equal(1, 1)",
    ],
)
def test_what_needs_more_than_values_is_left_to_a_run(source: str) -> None:
    with pytest.raises(NotValues):
        JavascriptScript(Program("javascript", "", tests=(source,))).collect()


@pytest.mark.parametrize(
    ("source", "count"),
    [
        (
            "const { f } = require('./solution'); describe('f', () => { it('adds', () => { expect(f(1)).toBe(2); }); });",
            1,
        ),
        ("for (const [x, y] of [[1, 2], [3, 4]]) assert.equal(f(x), y);", 2),
        ("test.each([[1, 2], [2, 3]])('f', (x, y) => expect(f(x)).toBe(y));", 2),
        ("const same = (a, b) => { if (a !== b) throw new Error(a); }; same(f(1), 2);", 1),
        ("import { f } from './solution.js';\nimport assert from 'node:assert';\nassert.equal(await f(1), 2);", 1),
        ("(() => { const t = () => { console.assert(f(1) === 2) }; t() })()", 1),
    ],
)
def test_calls_of_usual_tests_are_collected(source: str, count: int) -> None:
    assert len(JavascriptScript(Program("javascript", "", tests=(source,))).collect()) == count
