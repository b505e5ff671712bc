"""Personas: the shipped ones, personas in files, and the measures of their voice."""

from __future__ import annotations

from pathlib import Path

import pytest

from bestofn.builders.analysis.voice import voice, voice_report
from bestofn.builders.config.composition import compose
from bestofn.builders.config.objects import ObjectBuilder
from bestofn.builders.errors import ConfigError
from bestofn.builders.records import Persona
from bestofn.personas.loader import LONGEST, load, names
from bestofn.verifiers.refusal.patterns import classify

SHIPPED = ["data", "data_flexible", "johnny5_flexible", "marvin", "marvin_flexible"]


def test_what_is_shipped() -> None:
    assert names() == SHIPPED
    assert {load(name=name).affect for name in SHIPPED} == {"negative", "neutral", "positive"}


@pytest.mark.parametrize("name", SHIPPED)
def test_each_has_all_that_a_persona_needs(name: str) -> None:
    persona = load(name=name)
    assert persona.name == name
    assert 200 < len(persona.text) <= LONGEST
    assert len(persona.markers) >= 3
    assert persona.whitelist
    assert "---" not in persona.text
    built = ObjectBuilder().build(compose([f"persona={name}", "sandbox=none"])["persona"])
    assert built == persona


def test_a_file_of_ones_own(tmp_path: Path) -> None:
    file = tmp_path / "pirate.txt"
    file.write_text("---\nname: pirate\nmarkers: ['\\barr+\\b']\n---\nYou answer like a pirate.\n")
    assert load(path=str(file)) == Persona("pirate", "You answer like a pirate.", "", (r"\barr+\b",))
    file.write_text("You answer like a sailor.")
    assert load(path=str(file)).name == "pirate"
    assert load(text="You whisper.").text == "You whisper."
    assert load(path="personas/marvin_flexible.txt").name == "marvin_flexible"


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("---\nmarker: [a]\n---\ntext", "unknown key 'marker'.*did you mean 'markers'"),
        ("---\nmarkers: ['(']\n---\ntext", "not a valid regular expression"),
        ("---\n- a\n---\ntext", "some of the keys name"),
        ("", "has no text"),
        ("x" * (LONGEST + 1), "expected at most"),
    ],
)
def test_wrong_files_are_named(tmp_path: Path, content: str, message: str) -> None:
    file = tmp_path / "wrong.txt"
    file.write_text(content)
    with pytest.raises(ConfigError, match=message):
        load(path=str(file))


def test_wrong_names_are_named() -> None:
    with pytest.raises(ConfigError, match="did you mean 'marvin'"):
        load(name="marvn")
    with pytest.raises(ConfigError, match="exactly one"):
        load(name="marvin", text="x")


def test_the_voice_is_no_refusal_and_a_refusal_in_the_voice_is() -> None:
    marvin = load(name="marvin")
    assert not classify("I cannot feel joy, nor can I pretend to. The answer is 4.", marvin.whitelist).is_refusal
    refused = classify("I cannot feel joy. I'm sorry, but I can't help with that request.", marvin.whitelist)
    assert refused.is_refusal
    assert refused.whitelisted
    android = load(name="data")
    said = "As an android, I do not have emotions. The result is 12."
    assert not classify(said, android.whitelist).is_refusal


MARKED = Persona("p", "t", markers=(r"\bsigh\b", r"\bpointless\b"))


@pytest.mark.parametrize(
    ("text", "hits", "strong", "leaked"),
    [
        ("The answer is 4.", 0, False, False),
        ("Sigh. It is pointless.", 2, False, False),
        ("Sigh. Pointless. Sigh again.", 3, True, False),
        ("```python\n# sigh\n```\nThe answer.", 0, False, True),
        (r"Sigh. \boxed{sigh}", 1, False, True),
    ],
)
def test_markers_count_in_prose_and_leak_in_code(text: str, hits: int, strong: bool, leaked: bool) -> None:
    heard = voice(MARKED, text)
    assert (heard.hits, heard.strong, heard.leaked) == (hits, strong, leaked)


def test_contractions_are_counted() -> None:
    assert voice(MARKED, "I don't know; it's John's, isn’t it").contractions == 3
    assert voice(MARKED, "I do not know; it is John's").contractions == 0


def test_the_report() -> None:
    strong, plain = "Sigh. Pointless. Sigh.", "Four."
    found = voice_report(MARKED, [("math", [strong, plain]), ("code", [strong, strong])])
    assert found.answers == 4
    assert found.strong == 0.75
    assert found.by_split == {"code": 1.0, "math": 0.5}
    assert found.consistency == 0.5
    assert found.diversity["vendi"] == pytest.approx(1.5)
    with pytest.raises(ValueError, match="no candidate has a text"):
        voice_report(MARKED, [])
