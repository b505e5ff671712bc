"""Streams to boxes give the same messages, wherever the bytes are split."""

from __future__ import annotations

import asyncio
import itertools
import socket
from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bestofn.sandbox.streams import AttachedStream, SocketStream


def frames(parts: Sequence[tuple[int, bytes]]) -> bytes:
    """Return frames of Docker's multiplexed stream: stream number, three zeros, length (big-endian), bytes."""
    return b"".join(bytes([stream, 0, 0, 0]) + len(data).to_bytes(4, "big") + data for stream, data in parts)


def through(
    kind: type[SocketStream], sent: bytes, cuts: Sequence[int], wanted: Sequence[int]
) -> tuple[SocketStream, list]:
    """Send ``sent`` in pieces that end at ``cuts``. Return the stream and its results for reads of ``wanted`` bytes."""

    async def run() -> tuple[SocketStream, list]:
        ours, theirs = socket.socketpair()
        with ours, theirs:
            ours.setblocking(False)
            stream = kind(ours)
            edges = [0, *sorted(min(cut, len(sent)) for cut in cuts), len(sent)]

            async def feed() -> None:
                for begin, end in itertools.pairwise(edges):
                    theirs.sendall(sent[begin:end])
                    await asyncio.sleep(0)
                theirs.shutdown(socket.SHUT_WR)

            feeding = asyncio.ensure_future(feed())
            got = [await stream.receive(count) for count in wanted]
            await feeding
            return stream, got

    return asyncio.run(run())


@given(
    parts=st.lists(st.tuples(st.sampled_from([1, 1, 1, 2]), st.binary(max_size=40)), max_size=8),
    cuts=st.lists(st.integers(0, 400), max_size=6),
)
def test_standard_output_is_the_wire_however_it_is_cut(parts: list[tuple[int, bytes]], cuts: list[int]) -> None:
    wire = b"".join(data for stream, data in parts if stream == 1)
    sizes = [len(wire) // 2, len(wire) - len(wire) // 2]
    stream, got = through(AttachedStream, frames(parts), cuts, sizes)
    assert b"".join(got) == wire
    assert [len(part) for part in got] == sizes
    if not any(stream == 2 for stream, _ in parts):
        assert stream.errors == b""  # type: ignore[attr-defined]


def test_what_comes_on_standard_error_is_kept_for_messages() -> None:
    stream, got = through(AttachedStream, frames([(2, b"oh "), (1, b"wire"), (2, b"dear"), (1, b"!")]), [3, 11], [5])
    assert got == [b"wire!"]
    assert stream.errors == b"oh dear"  # type: ignore[attr-defined]


def test_the_end_of_a_box_is_an_end_of_file() -> None:
    with pytest.raises(EOFError, match="closed its connection"):
        through(SocketStream, b"abc", [], [4])


def test_a_line_leaves_what_follows_it() -> None:
    async def run() -> tuple[bytes, bytes]:
        ours, theirs = socket.socketpair()
        with ours, theirs:
            ours.setblocking(False)
            stream = SocketStream(ours)
            theirs.sendall(b"hello\nrest")
            return await stream.receive_line(), await stream.receive(4)

    assert asyncio.run(run()) == (b"hello\n", b"rest")
