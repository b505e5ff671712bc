"""Declarations of other projects match the right category, and nonsense matches no tool with high confidence."""

from __future__ import annotations

from pathlib import Path

import pytest

from bestofn.sandbox.tools.catalogue import CATALOGUE
from bestofn.sandbox.tools.tool_matching import CONFIDENT, adapted, nearest

FOREIGN = [
    line.split("\t")
    for line in (Path(__file__).parent / "foreign_tools.tsv").read_text("utf-8").splitlines()
    if line.strip()
]
NONSENSE = (
    "flurbinate_quonk",
    "xq7_zzt",
    "blorp",
    "reticulate_splines",
    "transmogrify_gizmo",
    "wibble_wobble",
    "defrobnicate",
    "zorgify_plumbus",
    "quux_handler",
    "embiggen_snark",
    "foo",
    "do_thing_42",
    "krzwq",
    "vorpal_blade_sharpener",
    "unobtainium_refinery",
)


def test_foreign_tools_find_their_category() -> None:
    wrong = []
    for name, description, category in FOREIGN:
        match = nearest(name, description)
        if match.category != category:
            wrong.append(f"{name}: {match.tool.name} ({match.confidence}), expected {category}")
    accuracy = 1 - len(wrong) / len(FOREIGN)
    assert accuracy >= 0.85, "\n".join(wrong)


def test_the_labels_are_categories() -> None:
    assert {category for _, _, category in FOREIGN} == {tool.category for tool in CATALOGUE.values()}


def test_every_name_and_alias_is_certain() -> None:
    for tool in CATALOGUE.values():
        for name in (tool.name, tool.declaration()["function"]["name"], *tool.aliases):
            assert (nearest(name).tool, nearest(name).confidence) == (tool, 1.0), name


@pytest.mark.parametrize("name", NONSENSE)
def test_nonsense_is_not_relied_on(name: str) -> None:
    assert nearest(name).confidence < CONFIDENT
    assert nearest(name, f"Applies {name.replace('_', ' ')}").confidence < CONFIDENT


def test_arguments_find_their_parameters() -> None:
    weather = CATALOGUE["weather.current"]
    assert adapted(weather, {"city": "Oslo", "unit": "celsius"}) == {"location": "Oslo"}  # no unit of ours
    assert adapted(CATALOGUE["stock.quote"], {"ticker": "AAPL"}) == {"symbol": "AAPL"}
    assert adapted(CATALOGUE["fx.convert"], {"amount": 5, "from_currency": "USD", "to_currency": "EUR"}) == {
        "amount": 5,
        "base": "USD",
        "quote": "EUR",
    }
    assert adapted(weather, {"planet": "Mars"}) is None
