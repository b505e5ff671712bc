"""Fingerprints: which changes of settings change them, and which do not."""

from bestofn.builders.run.fingerprints import stage_fingerprints


def test_another_verifier_changes_the_stages_from_verification_on() -> None:
    def names(**verifier: object) -> list[str]:
        return stage_fingerprints([{"id": 1}], [("generate", {"n": 4}), ("verify", verifier), ("pairs", {})])

    before, after = names(below=0.4), names(below=0.5)
    assert before == names(below=0.4)
    assert before[0] == after[0]
    assert not {*before[1:]} & {*after[1:]}
