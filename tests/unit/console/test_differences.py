"""Differences of versions."""

from __future__ import annotations

from fhirpub.console.differences import MOST, Difference, differences


def test_what_was_added_changed_and_removed_is_named_by_its_place() -> None:
    before = {"status": "preliminary", "code": {"text": "a"}, "note": [{"text": "x"}]}
    after = {"status": "final", "code": {"text": "a"}, "conclusion": "fine"}

    assert differences(before, after) == [
        Difference("status", "preliminary", "final"),
        Difference("conclusion", "", "fine"),
        Difference("note[0].text", "x", ""),
    ]


def test_the_metadata_of_versions_always_differ_and_are_left_out() -> None:
    assert differences({"meta": {"versionId": "1"}}, {"meta": {"versionId": "2"}}) == []


def test_the_number_of_the_version_in_the_address_of_a_document_is_left_out() -> None:
    def version(number: int) -> dict[str, str]:
        id_ = "ab428c66-85c0-4f93-9c98-67eb5a55a8be"
        return {"url": f"http://s/fhir/r4/Binary/{id_}.{number}.1"}

    assert differences(version(1), version(2)) == []


def test_so_many_differences_are_shown_at_most() -> None:
    after = {"code": [{"text": str(number)} for number in range(MOST + 1)]}

    assert len(differences({}, after)) == MOST
