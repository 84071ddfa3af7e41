"""The parameters of a history, and all that can be wrong with them."""

from __future__ import annotations

import pytest

from fhirpub.errors import InvalidSearch
from fhirpub.fhir.date_value import TIME_RULE
from fhirpub.interactions.context import Context
from fhirpub.interactions.history import PARAMETERS, read_parameters
from fhirpub.problems import OperationProblem
from tests.unit.interactions.histories import START, asked

NOT_WHOLE = "must be a whole number of at least 0"


def test_everything_that_is_wrong_with_the_parameters_is_reported_at_once(
    context: Context,
) -> None:
    wrong = asked(_count="-1", _since="soon", _at="then", _below="x")

    with pytest.raises(InvalidSearch) as refused:
        read_parameters(wrong, PARAMETERS, context)

    time_rule = f"{TIME_RULE}, without a prefix"
    assert [(issue.expression, issue.diagnostics) for issue in refused.value.issues] == [
        ("_count", NOT_WHOLE),
        ("_since", time_rule),
        ("_at", time_rule),
        ("_below", NOT_WHOLE),
    ]
    assert {issue.details for issue in refused.value.issues} == {
        OperationProblem.PARAMETER_INVALID
    }


@pytest.mark.parametrize("value", ["1.0", "+1", " 1", "²", "\u0661", "1000000000", "x"])
def test_a_count_is_a_whole_number_of_few_digits(context: Context, value: str) -> None:
    with pytest.raises(InvalidSearch, match=NOT_WHOLE):
        read_parameters(asked(_count=value), PARAMETERS, context)


@pytest.mark.parametrize("value", ["999999999", "0", "00"])
def test_a_count_of_nine_digits_is_one(context: Context, value: str) -> None:
    found = read_parameters(asked(_count=value), PARAMETERS, context)

    assert found.limit == min(int(value), context.config.fhir.page_size_max)


@pytest.mark.parametrize("name", ["_since", "_at"])
@pytest.mark.parametrize("value", ["ge2026", "eqeq2026", "eq", "2026-13"])
def test_a_time_has_no_prefix_but_eq_of_at(context: Context, name: str, value: str) -> None:
    with pytest.raises(InvalidSearch) as refused:
        read_parameters(asked(**{name: value}), PARAMETERS, context)

    assert [issue.expression for issue in refused.value.issues] == [name]


def test_a_plus_sign_that_was_decoded_as_a_blank_is_read(context: Context) -> None:
    found = read_parameters(
        asked(_since="2026-01-01T02:00:00 02:00", _at="2026-01-01T02:00:00 02:00"),
        PARAMETERS,
        context,
    )

    assert found.since == START
    assert found.at == (START, START + 1_000)


def test_what_is_not_given_is_not_listed(context: Context) -> None:
    found = read_parameters(asked(_since="2026", _count="3", _below="7"), PARAMETERS, context)

    assert found.given == (("_count", "3"), ("_since", "2026"), ("_below", "7"))
    assert (found.limit, found.since, found.at, found.below) == (3, START, None, 7)
    assert found.cursor == ""
    nothing = read_parameters(asked(), PARAMETERS, context)
    assert (nothing.given, nothing.since, nothing.below) == ((), None, None)
    assert nothing.limit == context.config.fhir.page_size
