"""Settings for all tests."""

from __future__ import annotations

import os
import signal
from collections.abc import Generator
from typing import Any

import pytest
from hypothesis import settings

from tests.requirements import SKIPS_NOTHING, sandbox_kind

settings.register_profile("bestofn", deadline=None)  # a busy machine is slow; speed is measured in tests/benchmarks
settings.load_profile("bestofn")

# A background job ignores Ctrl-C, and nohup ignores SIGHUP. Child processes inherit this: no signal could be tested.
signal.signal(signal.SIGINT, signal.default_int_handler)
signal.signal(signal.SIGHUP, signal.SIG_DFL)

if "PYTEST_XDIST_WORKER" in os.environ:  # each process gets one processor, before any library counts them
    os.environ.setdefault("OMP_NUM_THREADS", "1")


def pytest_xdist_auto_num_workers() -> int:
    """Return the number of processes for ``-n auto``: two per processor, because tests often wait for a service."""
    return 2 * len(os.sched_getaffinity(0))


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """With ``BESTOFN_SKIP_NOTHING=1``, let a skipped test fail: CI installs everything that a test can need."""
    report = yield
    if report.skipped and not hasattr(report, "wasxfail") and SKIPS_NOTHING:
        report.outcome = "failed"
        report.longrepr = f"skipped, but BESTOFN_SKIP_NOTHING is set: {report.longrepr}"
    return report


@pytest.fixture(scope="module", params=["docker", "local"])
def backend(request: pytest.FixtureRequest) -> Any:
    """Return the class of a sandbox. The tests run once per class, and are skipped if it cannot open here."""
    return sandbox_kind(request.param)
