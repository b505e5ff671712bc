"""Recognises a reply that repeats the reply to another request, as a cache between here and the service gives it.

Such a reply has the id and all other bytes of an earlier one. Some services give every reply the same id, and then
equal replies are usual. So a repeated reply counts only once the service has given two different ids.
"""

from __future__ import annotations

import hashlib
import logging
import re

log = logging.getLogger(__name__)

REMEMBERED = 100_000  # replies that later ones are compared with; about 10 MB
UNHELPFUL = 3  # after this many requests in a row whose second reply was repeated too, nothing is asked again
_ID = re.compile(rb'"(?:id|created_at)"\s*:\s*"([^"]+)"')


class RepeatedReplies:
    """The replies of one service. ``asked`` replies were repeated and are asked again; ``kept`` ones were accepted."""

    def __init__(self, service: str) -> None:
        self.asked = self.kept = 0
        self._service = service
        self._replies: dict[bytes, None] = {}  # digests, the oldest first
        self._id = b""  # the only id so far
        self._ids_differ = False
        self._early = 0  # repeated replies before the second id; they were accepted
        self._unhelpful = 0

    def asks_again(self, body: bytes) -> bool:
        """Record the first reply to a request. Return whether it repeats another one and should be asked again."""
        if not self._is_repeated(body):
            return False
        if self._unhelpful >= UNHELPFUL:
            self.kept += 1
            return False
        self.asked += 1
        return True

    def accept(self, body: bytes) -> None:
        """Record the second reply to a request, which is used in any case."""
        repeated = self._is_repeated(body)
        self.kept += repeated
        self._unhelpful = self._unhelpful + 1 if repeated else 0

    def _is_repeated(self, body: bytes) -> bool:
        match = _ID.search(body)
        if match is None:
            return False
        self._compare_id(match[1])
        digest = hashlib.blake2b(body, digest_size=12).digest()
        if digest not in self._replies:
            if len(self._replies) >= REMEMBERED:
                del self._replies[next(iter(self._replies))]
            self._replies[digest] = None
            return False
        self._early += not self._ids_differ
        return self._ids_differ

    def _compare_id(self, found: bytes) -> None:
        if self._ids_differ:
            return
        if self._id and found != self._id:
            self._ids_differ = True
            self.kept += self._early
        elif self._id and len(self._replies) == 2:
            log.info(
                "%s gives different replies the same id (%s), so a repeated reply cannot be recognised.",
                *(self._service, found.decode("utf-8", "replace")),
            )
        self._id = found
