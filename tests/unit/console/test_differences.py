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


def test_the_number_of_the_version_is_not_shown_of_another_document() -> None:
    id_ = "ab428c66-85c0-4f93-9c98-67eb5a55a8be"

    (found,) = differences({}, {"url": f"http://s/fhir/r4/Binary/{id_}.3.1"})

    assert found.after == f"http://s/fhir/r4/Binary/{id_}.\u2026.1"


def test_so_many_differences_are_shown_at_most() -> None:
    after = {"code": [{"text": str(number)} for number in range(MOST + 1)]}

    assert len(differences({}, after)) == MOST


def test_exactly_as_many_as_are_shown_are_all_shown() -> None:
    after = {"code": [{"text": str(number)} for number in range(MOST)]}

    found = differences({}, after)

    assert len(found) == MOST
    assert found[-1] == Difference(f"code[{MOST - 1}].text", "", str(MOST - 1))


def test_metadata_below_the_first_level_is_compared() -> None:
    found = differences(
        {"contained": [{"meta": {"versionId": "1"}}]},
        {"contained": [{"meta": {"versionId": "2"}}]},
    )

    assert found == [Difference("contained[0].meta.versionId", "1", "2")]


def test_a_long_text_is_cut_behind_its_limit() -> None:
    whole, cut = differences({}, {"a": "x" * 500, "b": "x" * 501})

    assert whole.after == "x" * 500
    assert cut.after == "x" * 500 + " \u2026"


def test_long_texts_that_differ_late_are_shown_from_a_little_before() -> None:
    same = "x" * 500

    (found,) = differences({"a": f"{same}no sign of it"}, {"a": f"{same}signs of it"})

    assert found == Difference(
        "a", f"\u2026 {'x' * 50}no sign of it", f"\u2026 {'x' * 50}signs of it"
    )


def test_another_document_is_a_difference() -> None:
    def version(id_: str, place: int) -> dict[str, str]:
        return {"url": f"http://s/fhir/r4/Binary/{id_}.1.{place}"}

    one, other = "a" * 36, "b" * 36

    assert len(differences(version(one, 1), version(other, 1))) == 1
    assert len(differences(version(one, 1), version(one, 2))) == 1


def test_values_of_all_kinds_are_compared_as_they_are_written() -> None:
    before = {"a": 1, "b": True, "c": None}
    after = {"a": 2, "b": False, "c": "x"}

    assert differences(before, after) == [
        Difference("a", "1", "2"),
        Difference("b", "True", "False"),
        Difference("c", "None", "x"),
    ]


def test_versions_that_are_equal_have_no_difference() -> None:
    version = {"status": "final", "code": [{"text": "a"}]}

    assert differences(version, dict(version)) == []


def test_of_long_texts_the_part_where_they_differ_is_shown() -> None:
    (found,) = differences({"a": "x" * 600 + "b"}, {"a": "x" * 400})

    assert found.before == f"… {'x' * 250}b"
    assert found.after == f"… {'x' * 50}"


def test_of_a_long_text_that_was_continued_the_end_is_shown() -> None:
    shorter, longer = "x" * 600, "x" * 600 + "end"
    (continued,) = differences({"a": shorter}, {"a": longer})
    (cut,) = differences({"a": longer}, {"a": shorter})

    assert (continued.before, continued.after) == (f"… {'x' * 50}", f"… {'x' * 50}end")
    assert (cut.before, cut.after) == (f"… {'x' * 50}end", f"… {'x' * 50}")


def test_of_a_text_that_became_long_the_part_where_it_differs_is_shown() -> None:
    short, long = "x" * 400, "x" * 400 + "y" * 300
    (became,) = differences({"a": short}, {"a": long})
    (was,) = differences({"a": long}, {"a": short})

    assert (became.before, became.after) == (f"… {'x' * 50}", f"… {'x' * 50}{'y' * 300}")
    assert (was.before, was.after) == (became.after, became.before)
