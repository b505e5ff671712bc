"""Expressions that would need too much time or memory are undecided after a short time, and never fail."""

import asyncio
import time

import pytest

from bestofn.builders.records import Candidate, Query, Reference
from bestofn.builders.stages.verdicts import verdict_of
from bestofn.sandbox.workers import ProcessPool, WorkerLost
from bestofn.verifiers.math import MathVerifier, judge

BOMBS = [
    "9^9^9", "9^{9^{9}}", "9**9**9**9", "10^{10^{10}}", "2^{2^{100}}", "1000000!", "((10!)!)!", "100000!!", "(10^9)!",
    "99999999999!", "3^{10000000000}", "(2^{31})^{2^{31}}", "7^{7^{7^{7}}}", r"\binom{10^8}{5 \cdot 10^7}",
    r"\binom{100000000}{50000000}", "10^{1000000}", "1.5^{100000000}", "(1/3)^{10^8}", "2^{-10^{9}}", "9e4999^{9e4999}",
    r"\sum_{k=1}^{1000000000} k^k", r"\sum_{n=1}^{\infty} \frac{1}{n^n}", r"\prod_{k=1}^{10^9} k",
    r"\int_0^1 x^{x^{x}} dx", r"\int_0^{\infty} \frac{\sin(x^{100})}{x^{50}+\ln(x)} dx",
    r"\lim_{n\to\infty} \sum_{k=1}^{n} \frac{k^{k}}{n^{n}}", "2^{10^{8}} + 3^{10^{8}}", "(10^{5})!/(10^{5}-1)!",
    r"\gcd(10^{100000}, 10^{99999})", r"\sqrt{10^{10^{6}}}", r"\log(9^{9^9})", r"\sin(10^{10^{10}})",
    "factorial(factorial(20))", r"2^{1000000} \bmod 9^{9^9}", "{" * 3000 + "7" + "}" * 3000, "(" * 5000 + "7" + ")" * 5000,
    "7" * 9000 + "^" + "7" * 900, "1+" * 4500 + "6", "x^" * 2000 + "x", r"\frac{1}{" * 1500 + "7" + "}" * 1500,
    r"\sqrt{" * 1500 + "7" + "}" * 1500, "-" * 4000 + "7", "!" * 3000, "7" + "!" * 50, "|" * 2000 + "7", "e^{e^{e^{e^{e^9}}}}",
]  # fmt: skip


@pytest.mark.parametrize("bomb", BOMBS, ids=lambda bomb: bomb[:30])
def test_a_bomb_is_left_undecided_at_once(bomb):
    started = time.process_time()
    finding = judge("8", rf"\boxed{{{bomb}}}")
    assert time.process_time() - started < 30  # computing it would take hours
    assert finding.outcome == "abstain", finding


@pytest.mark.parametrize("bomb", ["9^{9^{9}}", r"\sum_{k=1}^{1000000000} k^k"])
def test_a_bomb_equals_itself(bomb):
    assert judge(bomb, rf"\boxed{{{bomb}}}").outcome == "pass"


ENDLESS = "9" * 5000  # a model that does not stop; Python refuses to read integers of more than 4,300 digits
BEYOND_DOUBLES = [
    ("5", ENDLESS), (ENDLESS, ENDLESS + ".5"), ("0.5", "0." + ENDLESS), ("5 km", ENDLESS + " m"), ("3.0", ENDLESS + ".0"),
    ("5%", ENDLESS + "%"), ("$5", "$" + ENDLESS), ("5", ",".join(["999"] * 2000)), ("0x" + "f" * 5000, "5"),
    (r"\frac{1}{1+\sin\theta}", "1111111/3 - 2^1250"), (r"2\sqrt{41}", "5990^1000 ohms"), ("5", "10^{400} m"),
    ("[1,2]", "[1,10^{400}]"), ("1e400 km", "1e403 m"), ("5 ft 3 in", "10^{400} ft 3 in"), ("x>1", "x>10^{400}"),
    ("1.5", "-10^{400}.5"), (r"\sqrt{2}", r"\sqrt{10^{700}}"), ("1e-400", "0"), ("5 m", "0." + "0" * 400 + "1 km"),
    ("5", "0 \\cdot \\infty"), ("0", "\\infty - \\infty"),
]  # fmt: skip


@pytest.mark.parametrize(("reference", "answer"), BEYOND_DOUBLES, ids=lambda text: text[:20])
def test_numbers_beyond_doubles_raise_nothing(reference, answer):
    for asked, given in ((reference, answer), (answer, reference)):
        assert judge(asked, rf"\boxed{{{given}}}").outcome in ("fail", "abstain")
        assert judge(asked, rf"\boxed{{{asked}}}").outcome == "pass"


def test_powers_within_a_modulus_are_cheap():
    assert judge("2", r"\boxed{2^{1000000} \bmod 7}").outcome == "pass"
    assert judge("7", r"\boxed{2^{1000000} \bmod 7}").outcome == "fail"


@pytest.mark.slow
def test_sympy_is_bounded_by_its_worker():
    async def verdicts():
        async with ProcessPool(count=1) as workers:
            verifier = MathVerifier(workers, symbolic_s=3.0)
            for answer, text in [
                ("1", r"\int_0^1 2x \, dx"),
                ("8", r"\sum_{k=1}^{1000000000} k^k"),
                ("55", r"\sum_{k=1}^{10} k"),
            ]:
                query = Query("q", "math", (), reference=Reference(answer=answer))
                candidate = Candidate(0, ({"role": "assistant", "content": rf"\boxed{{{text}}}"},))
                yield await verifier.verify(query, candidate)

    async def outcomes():
        return [verdict.outcome async for verdict in verdicts()]

    assert asyncio.run(outcomes()) == ["pass", "abstain", "pass"]


def test_nothing_in_an_answer_is_executed(tmp_path):
    canary = tmp_path / "canary"
    for text in (
        f"__import__('os').system('touch {canary}')",
        f"\\boxed{{__import__('os').system('touch {canary}')}}",
        f"\\boxed{{open('{canary}','w')}}",
        f"\\boxed{{\\write18{{touch {canary}}}}}",
    ):
        assert judge("7", text).outcome != "pass"
    assert not canary.exists()


class Killed:
    """Workers whose processes are always killed."""

    async def call(self, function, *args, timeout_s, **limits):
        raise WorkerLost("signal 9 ended the worker process during a call")


def test_a_killed_worker_is_an_error_that_a_later_run_mends_and_never_another_verdict():
    verifier = MathVerifier(Killed())
    query = Query("q", "math", ({"role": "user", "content": "?"},), reference=Reference(answer=r"\int_0^1 x dx"))
    candidate = Candidate(0, ({"role": "assistant", "content": r"\boxed{\int_0^1 y dy}"},))
    verdict = asyncio.run(verdict_of(verifier, query, candidate))
    assert (verdict.outcome, verdict.confidence) == ("error", 0.0)
    assert "signal 9 ended the worker process" in verdict.explanation
