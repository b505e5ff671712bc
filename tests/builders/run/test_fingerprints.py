"""Fingerprints: which changes of the settings keep them equal, and which change them."""

from bestofn.builders.run.fingerprints import fingerprint


def test_fingerprints_ignore_key_order_and_see_every_value() -> None:
    assert fingerprint({"a": 1, "b": [2]}) == fingerprint({"b": [2], "a": 1})
    assert fingerprint({"a": 1}) != fingerprint({"a": 2}) != fingerprint({"a": "2"})
