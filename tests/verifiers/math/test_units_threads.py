"""Units are verified while another thread loads pint."""

import threading

import pint

from bestofn.verifiers.math import units


def test_two_threads_share_one_registry(monkeypatch):
    created = []

    def registry(**_):
        created.append(object())
        if len(created) == 1:
            other.start()
            other.join(0.2)  # without a lock, the other thread creates its registry now
        return created[-1]

    seen = []
    other = threading.Thread(target=lambda: seen.append(units._registry()))
    units._created_registry.cache_clear()
    with monkeypatch.context() as patched:
        patched.setattr(pint, "UnitRegistry", registry)
        seen.append(units._registry())
        other.join()
    units._created_registry.cache_clear()
    units.known.cache_clear()
    assert len(created) == 1
    assert seen == created * 2
