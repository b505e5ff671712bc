"""Chemical equations and formulas are equal if they have the same atoms and charges, in any notation."""

from __future__ import annotations

import asyncio

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bestofn.builders.protocols import verified_by
from bestofn.builders.records import Candidate, Query, Reference, Verdict
from bestofn.verifiers.chemistry import ChemistryVerifier, compare, read_equation, read_formula

METHANE = "CH4 + 2 O2 -> CO2 + 2 H2O"
IRON = "Fe^{3+} + 3 OH^- -> Fe(OH)3"


def query(check: object) -> Query:
    return Query("q", "", ({"role": "user", "content": "Balance."},), reference=Reference(checks={"chemistry": check}))


def verdict(check: object, text: str) -> Verdict:
    return asyncio.run(
        ChemistryVerifier().verify(query(check), Candidate(0, ({"role": "assistant", "content": text},)))
    )


@pytest.mark.parametrize(
    ("reference", "text", "outcome"),
    [
        (METHANE, "2O2 + CH4 → 2H2O + CO2", "pass"),
        (METHANE, "The balanced equation is: CH₄ + 2 O₂ ⟶ CO₂ + 2 H₂O", "pass"),
        (METHANE, r"$$\ce{CH4 + 2O2 -> CO2 + 2H2O}$$", "pass"),
        (METHANE, r"$\mathrm{CH_4} + 2\,\mathrm{O_2} \rightarrow \mathrm{CO_2} + 2\,\mathrm{H_2O}$", "pass"),
        (METHANE, "2 CH4(g) + 4 O2(g) -> 2 CO2(g) + 4 H2O(l)", "pass"),
        (METHANE, "1/2 CH4 + O2 = 1/2 CO2 + H2O", "pass"),
        (METHANE, "Unbalanced: CH4 + O2 -> CO2 + H2O\nBalanced: CH4 + 2O2 -> CO2 + 2H2O", "pass"),
        (METHANE, "CH4 + O2 -> CO2 + H2O", "fail"),
        (METHANE, "1/0 CH4 + O2 -> CO2 + H2O", "abstain"),
        (METHANE, "2 CH4 + 3 O2 -> 2 CO + 4 H2O", "fail"),
        (METHANE, "CO2 + 2 H2O -> CH4 + 2 O2", "fail"),
        (METHANE, "Methane burns.", "abstain"),
        (IRON, "Fe3+ + 3OH- -> Fe(OH)3", "pass"),
        (IRON, "Fe³⁺ + 3 OH⁻ → Fe(OH)₃", "pass"),
        (IRON, "Fe2+ + 2OH- -> Fe(OH)2", "fail"),
        ("H2SO4", r"\boxed{\mathrm{H_2SO_4}}", "pass"),
        ("H2SO4", "The answer is H2SO3.", "fail"),
        ("SO4^2-", r"\boxed{\ce{SO4^{2-}}}", "pass"),
        ("SO4^2-", "The answer is SO42-.", "pass"),
        ("SO4^2-", r"\boxed{SO_4}", "fail"),
        ("CuSO4·5H2O", r"\boxed{CuSO_4 \cdot 5H_2O}".replace(r" \cdot ", "·"), "pass"),
        ("H2SO4", "I do not know.", "abstain"),
    ],
)
def test_equations_and_formulas(reference: str, text: str, outcome: str) -> None:
    assert verdict(reference, text).outcome == outcome, compare(reference, text)


@pytest.mark.parametrize("check", ["", "Xy2 -> Z", 3, "H2 -> O2 -> H2O", "Ca(OH2"])
def test_a_reference_that_cannot_be_read_is_not_reached(check: object) -> None:
    assert verified_by(ChemistryVerifier(), query(check)) == ""
    assert verdict(check, METHANE).outcome == "abstain"


def test_an_unbalanced_equation_is_called_so() -> None:
    assert "not balanced" in verdict(METHANE, "CH4 + O2 -> CO2 + H2O").explanation
    assert read_equation("Cr2O7^2- + 14 H+ + 6 e- -> 2 Cr^3+ + 7 H2O").is_balanced()
    assert read_formula("NH4+") == (frozenset({("N", 1), ("H", 4)}), 1)


@given(st.text(alphabet="CHO()[]2+-^ ->·eN", max_size=30))
def test_no_answer_raises(text: str) -> None:
    assert compare(METHANE, text)[0] in ("pass", "fail", "abstain")
    assert compare("H2O", text)[0] in ("pass", "fail", "abstain")
