"""The name to use is a current one, if there is one."""

from __future__ import annotations

import pytest

from fhirpub.fhir.human_name import given_names, name_to_use


@pytest.mark.parametrize("former", ["old", "maiden"])
def test_a_former_name_is_used_only_without_another(former: str) -> None:
    before, now = {"use": former, "family": "Before"}, {"family": "Now"}

    assert name_to_use([before, now]) == now
    assert name_to_use([before]) == before


def test_the_official_name_is_used_wherever_it_stands() -> None:
    names = [{"family": "A"}, {"use": "usual", "family": "B"}, {"use": "official", "family": "C"}]

    assert name_to_use(names)["family"] == "C"


def test_the_first_of_several_current_names_is_used() -> None:
    names = [{"use": "old", "family": "A"}, {"use": "usual", "family": "B"}, {"family": "C"}]

    assert name_to_use(names)["family"] == "B"


def test_the_first_of_names_of_former_days_is_used() -> None:
    assert name_to_use([{"use": "maiden"}, {"use": "old"}]) == {"use": "maiden"}


def test_without_a_name_there_is_an_empty_one() -> None:
    assert name_to_use([]) == {}


def test_given_names_stand_in_their_order_without_gaps() -> None:
    assert given_names({"given": ["B", None, "", "A"]}) == "B A"
    assert given_names({"family": "A"}) == ""
