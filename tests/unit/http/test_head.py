"""What the head of a request says of its body and of its connection."""

from __future__ import annotations

import pytest

from fhirpub.http.head import MAX_FIELDS, UNREAD, Fields, HeadTooLong, read_head

HOST = "Host: a.example"


def fields(*lines: str, version: str = "1.1") -> Fields:
    head = "\r\n".join([f"GET / HTTP/{version}", *lines, "", ""])
    return read_head(head.encode("latin-1"))[1]


def test_a_head_has_its_line_and_its_fields() -> None:
    line, found = read_head(b"\r\nPOST /a?b HTTP/1.1\r\nHost: a\r\nX-One: \t1 \r\n\r\n")

    assert tuple(line) == ("POST", "/a?b", "HTTP/1.1")
    assert found.headers["X-One"] == "1"
    assert found.problem == ""


@pytest.mark.parametrize(
    ("lines", "version", "keeps_open"),
    [
        ([], "1.1", True),
        (["Connection: close"], "1.1", False),
        (["Connection: Close"], "1.1", False),
        (["Connection: upgrade, close"], "1.1", False),
        (["Connection: closed"], "1.1", True),
        ([], "1.0", False),
        (["Connection: keep-alive"], "1.0", True),
        (["Connection: Keep-Alive, x"], "1.0", True),
        (["Connection: keep-alive, close"], "1.0", False),
    ],
)
def test_the_client_says_whether_the_connection_stays(
    lines: list[str], version: str, *, keeps_open: bool
) -> None:
    assert fields(HOST, *lines, version=version).keeps_open is keeps_open


@pytest.mark.parametrize(
    ("lines", "length", "chunked", "has_body"),
    [
        ([], 0, False, False),
        (["Content-Length: 0"], 0, False, False),
        (["Content-Length: 7"], 7, False, True),
        (["Content-Length: 007"], 7, False, True),
        ([f"Content-Length: {'9' * 18}"], 10**18 - 1, False, True),
        (["Transfer-Encoding: chunked"], 0, True, True),
        (["Transfer-Encoding: Chunked"], 0, True, True),
    ],
)
def test_a_body_has_a_length_or_chunks(
    lines: list[str], length: int, *, chunked: bool, has_body: bool
) -> None:
    found = fields(HOST, *lines)

    assert found.problem == ""
    assert (found.length, found.is_chunked, found.has_body) == (length, chunked, has_body)


@pytest.mark.parametrize(
    ("lines", "version", "problem"),
    [
        (["Content-Length: -1"], "1.1", "Content-Length must be one whole number"),
        (["Content-Length: 1.0"], "1.1", "Content-Length must be one whole number"),
        (["Content-Length: +1"], "1.1", "Content-Length must be one whole number"),
        (["Content-Length: "], "1.1", "Content-Length must be one whole number"),
        ([f"Content-Length: {'1' * 19}"], "1.1", "Content-Length must be one whole number"),
        (["Content-Length: 1", "Content-Length: 1"], "1.1", "Content-Length must be one"),
        (["Transfer-Encoding: gzip, chunked"], "1.1", "Transfer-Encoding must be chunked"),
        (["Transfer-Encoding: identity"], "1.1", "Transfer-Encoding must be chunked"),
        (["Transfer-Encoding: chunked"], "1.0", "Transfer-Encoding needs HTTP/1.1"),
        (
            ["Transfer-Encoding: chunked", "Content-Length: 1"],
            "1.1",
            "Content-Length and Transfer-Encoding must not be sent together",
        ),
    ],
)
def test_a_length_that_others_may_read_otherwise_is_a_problem(
    lines: list[str], version: str, problem: str
) -> None:
    found = fields(HOST, *lines, version=version)

    assert found.problem.startswith(problem)
    assert found.length == 0


@pytest.mark.parametrize(
    ("lines", "version", "is_good"),
    [
        ([], "1.1", False),
        ([], "1.0", True),
        (["Host: "], "1.1", True),
        (["Host: a.example:8080"], "1.1", True),
        (["Host: [::1]:80"], "1.1", True),
        (["Host: a/b"], "1.1", False),
        (["Host: a b"], "1.1", False),
        (["Host: a@b"], "1.1", False),
        (["Host: a", "Host: a"], "1.1", False),
        (["Host: a", "Host: a"], "1.0", False),
    ],
)
def test_one_host_is_needed(lines: list[str], version: str, *, is_good: bool) -> None:
    assert fields(*lines, version=version).problem == ("" if is_good else "one Host is needed")


@pytest.mark.parametrize(
    ("expected", "version", "waits"),
    [
        ("100-continue", "1.1", True),
        ("100-Continue", "1.1", True),
        ("100-continue", "1.0", False),
        ("200-ok", "1.1", False),
    ],
)
def test_a_client_of_http_1_1_may_wait_for_a_word(
    expected: str, version: str, *, waits: bool
) -> None:
    assert fields(HOST, f"Expect: {expected}", version=version).expects_100 is waits


@pytest.mark.parametrize(("count", "is_read"), [(MAX_FIELDS, True), (MAX_FIELDS + 1, False)])
def test_a_head_has_at_most_a_hundred_fields(count: int, *, is_read: bool) -> None:
    lines = [HOST, *(f"X-{number}: 1" for number in range(count - 1))]

    if is_read:
        assert fields(*lines).problem == ""
    else:
        with pytest.raises(HeadTooLong) as refused:
            fields(*lines)
        assert (refused.value.in_fields, refused.value.in_line) == (True, False)


@pytest.mark.parametrize(
    "head",
    [
        b"GET /\r\n\r\n",
        b"GET / HTTP/2\r\nHost: a\r\n\r\n",
        b"GET /\xc3\xbc HTTP/1.1\r\nHost: a\r\n\r\n",
        b"GET / HTTP/1.1\r\nHost: a\nX: 1\r\n\r\n",
        b"GET / HTTP/1.1\r\nHost: a\rX: 1\r\n\r\n",
        b"GET / HTTP/1.1\r\nHost a\r\n\r\n",
        b"\r\n\r\nGET / HTTP/1.1\r\nHost: a\r\n\r\n",
    ],
)
def test_what_is_not_http_has_a_line_of_its_own_and_a_problem(head: bytes) -> None:
    assert read_head(head) is UNREAD
    assert UNREAD[1].problem == "this is not HTTP/1.1"
    assert not UNREAD[1].keeps_open


def test_fields_of_another_version_are_not_those_that_are_remembered() -> None:
    first, second = fields(HOST), fields(HOST, version="1.0")

    assert (first.keeps_open, second.keeps_open) == (True, False)


@pytest.mark.parametrize(("size", "remembered"), [(2_048, True), (2_049, False)])
def test_fields_of_many_bytes_are_not_remembered(size: int, *, remembered: bool) -> None:
    line = f"X-Long: {'a' * 2_100}"
    sent = f"{HOST}\r\n{line}"[: size - 4].split("\r\n")

    first, second = fields(*sent), fields(*sent)

    assert (first is second) is remembered
