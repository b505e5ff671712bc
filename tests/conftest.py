"""Settings for all tests."""

from __future__ import annotations

import gc
import os
import signal
import sys
from pathlib import Path
from typing import Any

import pytest
from hypothesis import settings

from tests.scheduling import LONGEST_FIRST, FilesByLibrary
from tests.transports import TRANSPORTS, use_transport

settings.register_profile("bestofn", deadline=None)  # a busy machine is slow; speed is measured in tests/benchmarks
settings.load_profile("bestofn")

# A background job ignores Ctrl-C, and nohup ignores SIGHUP. Child processes inherit this: no signal could be tested.
signal.signal(signal.SIGINT, signal.default_int_handler)
signal.signal(signal.SIGHUP, signal.SIG_DFL)

if "PYTEST_XDIST_WORKER" in os.environ:  # each process gets one processor, before any library counts them
    os.environ.setdefault("OMP_NUM_THREADS", "1")

MODULES_FROZEN: list[int] = [0]  # numbers of modules when their objects were frozen
gc.disable()  # collecting the tests creates no garbage; pytest_collection_finish enables it again


def pytest_xdist_auto_num_workers() -> int:
    """Return the number of processes for ``-n auto``: two per processor, because tests often wait for a service."""
    return 2 * len(os.sched_getaffinity(0))


def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> FilesByLibrary | None:
    """Return the scheduler for ``--dist loadfile``. For other distributions, pytest-xdist chooses."""
    return FilesByLibrary(config, log) if config.getvalue("dist") == "loadfile" else None


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Put the longest files first. The order of the tests within a file stays the same."""
    tests = Path(__file__).parent
    places = {tests / name: place for place, name in enumerate(LONGEST_FIRST)}
    items.sort(key=lambda item: places.get(item.path, len(places)))


def flush_nothing(descriptor: int) -> None:
    """Replace ``os.fsync``. It protects against a loss of power, which no test has. A call takes 4 ms on many disks."""
    os.fstat(descriptor)  # raises OSError for a descriptor that is not open, as ``os.fsync`` does


os.fsync = flush_nothing


def pytest_collection_finish() -> None:
    """Exclude the imported modules and collected tests from every later garbage collection."""
    gc.freeze()
    gc.enable()
    MODULES_FROZEN.append(len(sys.modules))


def pytest_runtest_logfinish() -> None:
    """After a test that imported a large library, exclude its objects from every later garbage collection.

    Each training collects garbage several times. With PyTorch and Transformers loaded, each collection would scan half
    a million objects, which takes 0.35 s.
    """
    if len(sys.modules) > MODULES_FROZEN[-1] + 200:
        gc.collect()
        gc.freeze()
        MODULES_FROZEN.append(len(sys.modules))


@pytest.fixture(params=TRANSPORTS)
def transport(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """Run the test once per transport. All providers whose service has an SDK use this transport."""
    return use_transport(monkeypatch, request.param)
