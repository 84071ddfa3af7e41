"""Which bytes of a document a Range header asks for."""

from __future__ import annotations

import pytest

from fhirpub.web.message.byte_range import RangeNotSatisfiable, part_of


@pytest.mark.parametrize(
    ("asked", "part"),
    [
        ("bytes=0-0", slice(0, 1)),
        ("bytes=0-9", slice(0, 10)),
        ("bytes=0-8", slice(0, 9)),
        ("bytes=0-99", slice(0, 10)),
        ("bytes=4-4", slice(4, 5)),
        ("bytes=9-", slice(9, 10)),
        ("bytes=0-", slice(0, 10)),
        ("bytes=-1", slice(9, 10)),
        ("bytes=-10", slice(0, 10)),
        ("bytes=-11", slice(0, 10)),
        (" BYTES= 2-3 ", slice(2, 4)),
        ("bytes=\t2-3", slice(2, 4)),
    ],
)
def test_a_range_of_ten_bytes(asked: str, part: slice) -> None:
    assert part_of(10, asked) == part


@pytest.mark.parametrize(
    "asked", ["bytes=10-", "bytes=10-12", "bytes=11-", "bytes=-0", "bytes=-00"]
)
def test_a_range_behind_the_end_does_not_exist(asked: str) -> None:
    with pytest.raises(RangeNotSatisfiable) as refused:
        part_of(10, asked)

    assert refused.value.size == 10
    assert str(refused.value) == "the document has 10 bytes, and none in this range"


@pytest.mark.parametrize("asked", ["bytes=0-", "bytes=-1", "bytes=0-0"])
def test_no_range_of_an_empty_document_exists(asked: str) -> None:
    with pytest.raises(RangeNotSatisfiable):
        part_of(0, asked)


@pytest.mark.parametrize(
    "asked",
    [
        "",
        "bytes=-",
        "bytes=",
        "bytes=3-2",
        "bytes=0-1,3-4",
        "items=0-1",
        "bytes=a-b",
        "bytes=0x1-2",
        "bytes=0- 1",
        "bytes=0-1234567890123456",
        "bytes=٣-4",
    ],
)
def test_what_is_no_single_range_of_bytes_gets_all(asked: str) -> None:
    assert part_of(10, asked) is None


def test_the_longest_number_is_of_fifteen_digits() -> None:
    assert part_of(10, "bytes=0-999999999999999") == slice(0, 10)
