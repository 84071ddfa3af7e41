"""Decoding gzip in slices, and what is refused."""

from __future__ import annotations

import gzip
import zlib
from collections.abc import Iterable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fhirpub.errors import InvalidContent
from fhirpub.web.message.content_coding import GzipDecoder, encode_gzip, names_gzip


def decode(pieces: Iterable[bytes], most: int = 1000) -> bytes:
    """Decode as a handler does, and hold each slice to its size."""
    decoder, slices = GzipDecoder(), []
    for piece in pieces:
        decoder.feed(piece)
        while decoder.has_more:
            slices.append(decoder.decode(most))
            assert len(slices[-1]) <= most
    decoder.check_end()
    return b"".join(slices)


def pieces_of(data: bytes, size: int) -> list[bytes]:
    return [data[at : at + size] for at in range(0, len(data), size)]


@settings(deadline=None)
@given(
    data=st.one_of(st.binary(max_size=3000), st.integers(0, 5000).map(bytes)),
    level=st.integers(0, 9),
    piece=st.integers(1, 400),
    most=st.integers(1, 700),
)
def test_what_was_compressed_is_decoded_in_slices(
    data: bytes, level: int, piece: int, most: int
) -> None:
    assert decode(pieces_of(gzip.compress(data, level), piece), most) == data


@settings(deadline=None)
@given(data=st.binary(max_size=500), cut=st.integers(1, 10_000), piece=st.integers(1, 50))
def test_a_stream_that_is_cut_anywhere_is_refused(data: bytes, cut: int, piece: int) -> None:
    coded = gzip.compress(data)
    cut = 1 + cut % (len(coded) - 1)

    with pytest.raises(InvalidContent, match="cut short"):
        decode(pieces_of(coded[:cut], piece))


@pytest.mark.parametrize("piece", [1, 7, 10_000])
@pytest.mark.parametrize(
    "behind", [b"\0", b"garbage", gzip.compress(b"more")], ids=["NUL", "garbage", "a member"]
)
def test_what_follows_the_member_is_refused(behind: bytes, piece: int) -> None:
    with pytest.raises(InvalidContent, match="goes on after the end"):
        decode(pieces_of(gzip.compress(b"{}" * 500) + behind, piece))


@pytest.mark.parametrize(
    "wrong",
    [
        b'{"resourceType": "Parameters"}',
        zlib.compress(b"of zlib"),
        gzip.compress(b"{}")[:-8] + bytes(8),
        gzip.compress(b"{}")[:-4] + b"\xff\0\0\0",
        gzip.compress(b"{}")[:10] + b"\xff" * 20,
    ],
    ids=["JSON", "zlib", "another checksum", "another length", "another block type"],
)
def test_what_is_no_gzip_is_refused(wrong: bytes) -> None:
    with pytest.raises(InvalidContent, match="not valid gzip"):
        decode([wrong])


@settings(deadline=None)
@given(st.binary(max_size=200))
def test_any_bytes_are_decoded_or_refused(data: bytes) -> None:
    try:
        decoded = decode([data])
    except InvalidContent:
        return
    assert not data or gzip.decompress(data) == decoded


def test_all_that_came_counts_as_it_was_sent() -> None:
    decoder, coded = GzipDecoder(), gzip.compress(b"{}" * 500)

    for piece in pieces_of(coded, 7):
        decoder.feed(piece)
        while decoder.has_more:
            decoder.decode(1_000)

    assert decoder.received == len(coded)


def test_an_empty_body_is_no_stream_that_was_cut() -> None:
    assert decode([]) == b""


def test_the_same_body_is_encoded_into_the_same_bytes() -> None:
    assert encode_gzip(b"{}" * 100) == encode_gzip(b"{}" * 100)
    assert gzip.decompress(encode_gzip(b"{}" * 100)) == b"{}" * 100


def test_an_encoded_body_names_no_time() -> None:
    assert encode_gzip(b"{}")[4:8] == bytes(4)


@pytest.mark.parametrize(
    ("coding", "expected"),
    [("gzip", True), (" GZIP ", True), ("x-gzip", True), ("gzip, gzip", False), ("br", False)],
)
def test_gzip_is_known_by_its_two_names(coding: str, *, expected: bool) -> None:
    assert names_gzip(coding) is expected
