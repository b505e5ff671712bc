"""Stores per judge which settings its service refuses, and whether the judge works. Used by ``judge_request``.

A judge gets requests with temperature 0 and a JSON Schema. Some services refuse these settings for some models. Then
all further requests to this judge leave them out, and one warning is logged. The first request to a judge is sent
alone, so that the service does not refuse many requests at once.
"""

from __future__ import annotations

import asyncio
import logging
import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from weakref import WeakKeyDictionary

from bestofn.builders.errors import OutageError, RequestError
from bestofn.builders.protocols import Sampler
from bestofn.builders.records import Request

log = logging.getLogger(__name__)

FAILED_AT_START = 25  # this many failed replies before any success stop the run: the judge must be wrong

_REFUSALS: Mapping[str, re.Pattern[str]] = {
    "temperature": re.compile(r"temperature", re.IGNORECASE),
    "response_format": re.compile(
        r"response[_ ]format|json[_ ]schema|structured[_ ]output|output_config|text\.format|guided_json", re.IGNORECASE
    ),
}
"""Setting -> a pattern that finds the setting in the error message of a service that refuses it."""


@dataclass
class JudgeHealth:
    """What is known about one judge. ``left_out`` contains the settings that its service refuses.

    ``failures`` counts failed replies. ``works`` is True after the first reply with a verdict.
    """

    name: str
    left_out: set[str] = field(default_factory=set)
    answered: bool = False  # whether a request was answered, or failed for another reason than a setting
    first: asyncio.Lock = field(default_factory=asyncio.Lock)  # held while requests are sent one at a time
    failures: int = 0
    works: bool = False

    def accepted(self, request: Request) -> Request:
        """Return ``request`` without the settings that the service refuses."""
        if "temperature" in self.left_out:
            request = replace(request, sampling=replace(request.sampling, temperature=None))
        return replace(request, schema=None) if "response_format" in self.left_out else request

    def learn(self, answer: object, sent: Request) -> bool:
        """Add to ``left_out`` the settings that ``answer`` refuses, and return whether there is such a setting.

        ``answer`` is the result of the request ``sent``. Only the temperature and the JSON Schema of ``sent`` can be
        refused.
        """
        if not isinstance(answer, RequestError):
            return False
        given = {"temperature": sent.sampling.temperature is not None, "response_format": sent.schema is not None}
        refused = [name for name, mark in _REFUSALS.items() if given[name] and mark.search(str(answer))]
        for name in refused:
            if name not in self.left_out:
                self.left_out.add(name)
                log.warning(
                    "The judge %s refuses the setting %s, so all further requests leave it out: %s",
                    self.name,
                    name,
                    answer,
                )
        return bool(refused)

    def count(self, problem: str) -> None:
        """Count one reply. ``problem`` is the reason why the reply has no verdict; "" if it has one.

        Raises ``OutageError`` if all of the first ``FAILED_AT_START`` replies failed.
        """
        self.works = self.works or not problem
        self.failures += bool(problem)
        if not self.works and self.failures >= FAILED_AT_START:
            raise OutageError(
                f"the judge {self.name} failed on each of its first {self.failures} calls. The last problem: "
                f"{problem[:500]}. Choose another judge model, or repair its service, and run the same command again: "
                "the answers are in the journal."
            )


_HEALTH: WeakKeyDictionary[Sampler, JudgeHealth] = WeakKeyDictionary()


def health_of(judge: Sampler) -> JudgeHealth:
    """Return the ``JudgeHealth`` of ``judge``. The same sampler always has the same object."""
    if judge not in _HEALTH:
        _HEALTH[judge] = JudgeHealth(judge.model)
    return _HEALTH[judge]
