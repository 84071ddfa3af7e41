"""Files in memory, by which two processes exchange bytes."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import closing
from types import SimpleNamespace

import pytest

from fhirpub.runtime import memory_file
from fhirpub.runtime.memory_file import MemoryFile


@pytest.fixture
def file() -> Iterator[MemoryFile]:
    with closing(MemoryFile()) as made:
        yield made


def test_bytes_are_taken_in_the_parts_that_were_announced(file: MemoryFile) -> None:
    file.append(b"head")
    file.append(b"body" * 200_000)

    length = file.end()

    assert file.take(4, length - 4) == [b"head", b"body" * 200_000]


def test_several_parts_follow_each_other(file: MemoryFile) -> None:
    file.append(b"onetwothree, four")
    file.end()

    assert file.take(3, 3, 5, 2, 4) == [b"one", b"two", b"three", b", ", b"four"]


def test_the_next_bytes_replace_those_that_were_taken(file: MemoryFile) -> None:
    file.append(b"first")
    file.take(file.end())

    file.append(b"next")

    assert file.take(file.end()) == [b"next"]


def test_taking_bytes_frees_their_memory(file: MemoryFile) -> None:
    file.append(bytes(1_000_000))
    file.take(file.end())

    assert os.fstat(file.descriptor).st_size == 0


def test_fewer_bytes_than_were_announced_are_an_error(file: MemoryFile) -> None:
    file.append(b"half")

    with pytest.raises(EOFError):
        file.take(8)


def test_what_is_closed_has_no_descriptor_any_more() -> None:
    file = MemoryFile()
    file.close()

    with pytest.raises(OSError, match="Bad file descriptor"):
        os.fstat(file.descriptor)


def test_where_there_are_no_files_in_memory_a_temporary_one_is_used(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    own = SimpleNamespace(**vars(os))
    del own.memfd_create
    monkeypatch.setattr(memory_file, "os", own)

    with closing(MemoryFile()) as file:
        file.append(b"body")
        assert file.take(file.end()) == [b"body"]


def test_bytes_are_taken_through_the_descriptor_that_another_has(file: MemoryFile) -> None:
    with closing(MemoryFile(os.dup(file.descriptor))) as other:
        file.append(b"body")

        assert other.take(file.end()) == [b"body"]
