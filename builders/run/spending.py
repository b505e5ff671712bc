"""Adds up what all commands on a run have spent, for its manifest. Used by ``builders.run.pipeline``.

``spending`` covers all commands that worked on the run. A killed command could not write its counts. Its requests,
tokens and dollars come from the run's journal. ``last_command`` has the counts of the last command that changed it.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from bestofn.builders.errors import BestofnError
from bestofn.builders.records import JsonObject
from bestofn.builders.run import manifest
from bestofn.builders.run.run_folder import JOURNAL
from bestofn.builders.sampling.journal import Journal

log = logging.getLogger(__name__)

PRESENT = ("notes", "usd_before")  # describe only the present command


class Spending:
    """The usage and cost of all commands on the run in ``out``. ``config`` is the configuration of the run.

    The constructor reads the old manifest, so create the object before this command writes the manifest.
    """

    def __init__(self, config: JsonObject, out: Path) -> None:
        own = config.get("journal") in (None, str(out / JOURNAL))
        self._journal = out / JOURNAL if own else None  # several runs may share another journal
        self._earlier: JsonObject = {}
        try:
            self._earlier = manifest.read(out).get("spending") or {}
        except BestofnError:  # a damaged manifest is written again
            log.debug("The manifest in %s cannot be read.", out)

    def facts(self, now: JsonObject) -> dict[str, Any]:
        """Return the manifest's entries ``spending`` and ``last_command``. ``now`` are the counts of this command."""
        whole = _sum(self._earlier, {key: value for key, value in now.items() if key not in PRESENT})
        for key, value in self._paid().items():
            whole[key] = max(whole.get(key) or 0, value)
        return {"spending": whole, "last_command": dict(now)}

    def _paid(self) -> Mapping[str, float]:
        """Return the counts of all replies in the run's own journal; {} if there is no readable journal."""
        if self._journal is None or not self._journal.exists():
            return {}
        try:
            journal = Journal(self._journal, readonly=True).open()
        except BestofnError:
            return {}
        try:
            return journal.paid()
        except BestofnError:  # a damaged journal is named by the command that needs it
            return {}
        finally:
            journal.close()


def _sum(first: JsonObject, second: JsonObject) -> dict[str, Any]:
    """Add two objects key by key. Nested objects are added in the same way. A missing number is 0."""
    summed: dict[str, Any] = {}
    for key in dict.fromkeys((*first, *second)):
        one, other = first.get(key), second.get(key)
        if isinstance(one, Mapping) or isinstance(other, Mapping):
            summed[key] = _sum(one or {}, other or {})
        else:
            summed[key] = (one or 0) + (other or 0)
    return summed
