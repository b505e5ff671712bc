# ruff: noqa: SIM905, a list of words reads best as words
"""Properties of the math verifier for arbitrary answers.

No text raises an error, equality is symmetric, printing and parsing keep the value, and verdicts do not depend on
threads or processes.
"""

import asyncio
import threading
from fractions import Fraction

from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from bestofn.sandbox.workers import ProcessPool
from bestofn.verifiers.math import final_answer, judge
from bestofn.verifiers.math.equivalence import compare
from bestofn.verifiers.math.nodes import Apply, Number, Symbol, latex
from bestofn.verifiers.math.normalisation import normal
from bestofn.verifiers.math.reading import read
from bestofn.verifiers.math.rules.terms import Terms, agree

STRICT = Terms(rounding="strict")

numbers = st.integers(-999, 999).map(Number) | st.builds(
    lambda scaled, places: Number(Fraction(scaled, 10**places), -places), st.integers(1, 99999), st.integers(1, 4)
)
leaves = numbers | st.sampled_from([Symbol("x"), Symbol("y"), Symbol("pi")])


def _grown(children):
    pairs = st.tuples(children, children)
    return st.one_of(
        pairs.map(lambda ab: Apply("+", ab)),
        pairs.map(lambda ab: Apply("*", ab)),
        pairs.map(lambda ab: Apply("/", ab)),
        st.tuples(children, st.integers(0, 4).map(Number)).map(lambda ab: Apply("^", ab)),
        children.map(lambda a: Apply("neg", (a,))),
        children.map(lambda a: Apply("sqrt", (a,))),
        children.map(lambda a: Apply("abs", (a,))),
        children.map(lambda a: Apply("sin", (a,))),
    )


expressions = st.recursive(leaves, _grown, max_leaves=8)
answers = (
    expressions
    | st.lists(expressions, min_size=2, max_size=4).map(lambda items: Apply(",", tuple(items)))
    | st.tuples(expressions, expressions).map(lambda ab: Apply("()", ab))
    | st.tuples(expressions, expressions).map(lambda ab: Apply("=", ab))
)
pieces = st.sampled_from(
    r"\frac \sqrt \boxed{ { } ( ) [ ] \{ \} $ $$ \( \) \text{ \mathrm{ ^ _ ^\circ \pm \cup , ; : = < > \le \in | ! % . .. ... "
    r"1 2 0 10^9 9^9 0.5 1,000 x y xy e i \pi \infty sin \log_ \binom \begin{pmatrix} \end{pmatrix} & \\ \int \sum is the "
    r"answer answer: The_answer_is #### <think> </think> ** True (A) (B) cm \mathrm{~m} hours and or -- - + * / √ ½ ² ∞ £ € '".split()
)
soups = st.lists(pieces, max_size=40).map(" ".join) | st.lists(pieces, max_size=40).map("".join)
texts = st.text(max_size=300) | soups
fuzzing = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])


@fuzzing
@given(texts, texts)
def test_no_text_raises(reference, text):
    finding = judge(reference, text, problem=text)
    assert finding.outcome in ("pass", "fail", "abstain")
    assert 0 <= finding.confidence <= 1


@fuzzing
@given(texts)
def test_extraction_takes_what_is_there(text):
    assert isinstance(final_answer(text).text, str)


@fuzzing
@given(texts)
def test_normalising_twice_reads_the_same(text):
    once = normal(text)
    assert read(once) == read(normal(once)) or normal(once) != once


@fuzzing
@given(answers)
def test_an_answer_equals_itself_after_printing_and_reading(node):
    printed = latex(node)
    match = compare(node, read(printed), STRICT)
    assert match.equal is not False, (printed, match)


@fuzzing
@given(expressions, expressions)
def test_sameness_of_exact_expressions_is_symmetric(left, right):
    assert compare(left, right, STRICT).equal == compare(right, left, STRICT).equal


@fuzzing
@given(expressions, expressions)
def test_sums_and_products_commute(left, right):
    for head in ("+", "*"):
        assert compare(Apply(head, (left, right)), Apply(head, (right, left)), STRICT).equal is not False


@given(st.fractions(), st.fractions())
def test_strict_agreement_of_fractions_is_equality(left, right):
    assert bool(agree(left, None, right, None, "strict")) == (left == right) or abs(left - right) <= abs(left) / 10**9


@given(st.integers(-(10**6), 10**6), st.integers(1, 4), st.integers(-400, 400))
def test_a_rounded_reference_is_met_by_what_rounds_to_it(scaled, places, nudge):
    reference = Fraction(scaled, 10**places)
    assume(abs(scaled) >= 100)
    near = reference + Fraction(nudge, 1000) / 10**places
    assert agree(reference, -places, near, None, "reference_precision")


@given(st.integers(-(10**9), 10**9), st.integers(-(10**9), 10**9))
def test_integers_are_exact(left, right):
    assert (judge(str(left), rf"\boxed{{{right}}}").outcome == "pass") == (left == right)


@settings(deadline=None, max_examples=10)
@given(st.lists(st.tuples(texts, texts), min_size=1, max_size=20))
def test_a_thread_finds_the_same(pairs):
    found = []
    thread = threading.Thread(target=lambda: found.extend(judge(*pair) for pair in pairs))
    thread.start()
    thread.join()
    assert found == [judge(*pair) for pair in pairs]


def test_a_process_finds_the_same():
    pairs = [
        ("1/2", r"\boxed{0.5}"),
        ("7", r"\boxed{9^{9^{9}}}"),
        ("4.8 m", r"\boxed{480\ \text{cm}}"),
        (r"\sqrt{2}", r"\boxed{\frac{2}{\sqrt 2}}"),
        ("x^2-1", r"\boxed{(x-1)(x+1)}"),
        ("(0,1)", r"\boxed{[0,1)}"),
    ]

    async def elsewhere():
        async with ProcessPool(count=1) as workers:
            return [await workers.call(judge, *pair, timeout_s=30) for pair in pairs]

    assert asyncio.run(elsewhere()) == [judge(*pair) for pair in pairs]
