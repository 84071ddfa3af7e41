"""What operations return, as facts and tables."""

from __future__ import annotations

import pytest

from fhirpub.console.operators.shown import MAX_ROWS, Piece, Shower

TENANT = "7d1a2b3c-0000-4000-8000-000000000000"


def texts(pieces: list[Piece]) -> list[str]:
    return [one.text for one in pieces]


def test_an_id_leads_to_the_page_of_its_record() -> None:
    (fact,) = Shower(names={TENANT: "Lab"}).facts({"tenant": TENANT})

    assert fact.pieces == [Piece("Lab", f"/console/operations/tenants/{TENANT}")]


def test_an_id_is_encoded_in_its_address() -> None:
    (piece,) = Shower(subject="endpoint").pieces("id", 'x/..?"')

    assert piece.href == "/console/operations/endpoints/x%2F..%3F%22"


def test_a_nested_record_becomes_facts_with_both_names() -> None:
    facts = Shower().facts({"deliveries": {"dead": 3, "open": None}})

    assert [(one.label, texts([*one.pieces])) for one in facts] == [
        ("Deliveries dead", ["3"]),
        ("Deliveries open", []),
    ]


def test_secrets_are_apart() -> None:
    shown = Shower().show({"client_id": "c", "client_secret": "s", "token": ""})

    assert [one.label for one in shown.secrets] == ["Client secret"]
    assert [one.label for one in shown.facts] == ["Client", "Token"]


def test_a_list_of_records_becomes_a_table_of_all_their_members() -> None:
    (table,) = Shower().show({"orders": [{"id": "a"}, {"reason": "b"}]}).tables

    assert table.columns == ["Id", "Reason"]
    assert [[texts([*cell]) for cell in row] for row in table.rows] == [[["a"], []], [[], ["b"]]]


def test_a_record_in_a_cell_is_one_line() -> None:
    (piece,) = Shower().pieces("attempts", [{"number": 1, "why": "no answer", "status": None}])

    assert piece.text == "Number: 1; Reason: no answer"


def test_a_table_is_bounded_and_says_so() -> None:
    table = Shower().table([{"id": str(number)} for number in range(1_234)], title="Orders")

    assert len(table.rows) == MAX_ROWS
    assert table.title == f"Orders, the first {MAX_ROWS} of 1,234"


def test_a_long_list_in_a_record_is_bounded() -> None:
    pieces = Shower(max_pieces=2).pieces("patients", ["Patient/1", "Patient/2", "Patient/3"])

    assert texts(pieces) == ["Patient/1", "Patient/2", "and 1 more"]


def test_of_a_search_only_the_names_of_parameters_are_shown() -> None:
    pieces = Shower().pieces("query", "name%3Aexact=M%C3%BCller&birthdate=1970&birthdate=1971")

    assert texts(pieces) == ["name:exact", "birthdate"]


def test_what_is_no_name_of_a_parameter_is_not_shown() -> None:
    assert Shower().pieces("query", "M%C3%BCller&M%20M=1&=x") == []


def test_a_time_is_shown_without_fractions() -> None:
    (piece,) = Shower().pieces("created", "2026-11-27T20:04:11.195Z")

    assert (piece.kind, piece.short) == ("time", "2026-11-27 20:04:11 UTC")


def test_milliseconds_of_a_record_are_a_time() -> None:
    (piece,) = Shower().pieces("ordered", 0)

    assert piece.short == "1970-01-01 00:00:00 UTC"


def test_whether_something_is_disabled_is_its_state() -> None:
    assert Shower().pieces("disabled", value=True) == [Piece("disabled", kind="bad")]
    assert Shower().pieces("disabled", value=False) == [Piece("enabled", kind="good")]


def test_a_table_shows_less_of_a_long_list_than_facts_do() -> None:
    names = [f"Patient/{number}" for number in range(30)]
    table = Shower().table([{"patients": names}])
    (fact,) = Shower().facts({"patients": names})

    assert texts([*table.rows[0][0]])[-1] == "and 20 more"
    assert len(fact.pieces) == 30


def test_a_table_shows_no_more_than_what_is_asked_for() -> None:
    names = [f"Patient/{number}" for number in range(8)]

    table = Shower(max_pieces=5).table([{"patients": names}])

    assert texts([*table.rows[0][0]]) == [*names[:5], "and 3 more"]


@pytest.mark.parametrize(
    ("value", "piece"),
    [
        (True, Piece("yes")),
        (False, Piece("no")),
        (0, Piece("0", kind="number")),
        (1_234, Piece("1,234", kind="number")),
        (0.5, Piece("0.5", kind="number")),
    ],
)
def test_a_number_is_shown_as_one_and_a_truth_as_a_word(value: float, piece: Piece) -> None:
    assert Shower().pieces("dry_run", value) == [piece]


@pytest.mark.parametrize(
    ("state", "kind"),
    [
        ("active", "good"),
        ("closed", "good"),
        ("delivered", "good"),
        ("right", "good"),
        ("dead", "bad"),
        ("deleted", "bad"),
        ("disabled-unverified", "bad"),
        ("open", "bad"),
        ("half-open", "warn"),
        ("held", "warn"),
        ("pending", "warn"),
        ("of-a-later-release", "badge"),
    ],
)
def test_a_state_is_shown_by_whether_it_is_good(state: str, kind: str) -> None:
    for name in ("breaker", "state", "status", "verdict"):
        assert Shower().pieces(name, state) == [Piece(state, kind=kind)]


@pytest.mark.parametrize("name", ["by", "patients", "what"])
def test_what_a_record_names_by_kind_and_id_leads_there(name: str) -> None:
    (client,) = Shower().pieces(name, "Client/c1")
    (patient,) = Shower().pieces(name, "Patient/p1")
    (word,) = Shower().pieces(name, "ana")

    assert client == Piece("Client/c1", "/console/operations/clients/c1", "code")
    assert patient == Piece("Patient/p1", kind="code")
    assert word == Piece("ana")


def test_a_tenant_whose_name_is_not_at_hand_is_shown_by_its_id() -> None:
    (piece,) = Shower(names={TENANT: "Lab"}).pieces("tenant", "t9")

    assert piece == Piece("t9", "/console/operations/tenants/t9")


def test_an_id_that_leads_somewhere_is_code_and_other_texts_are_not() -> None:
    assert Shower(subject="client").pieces("client_id", "c1")[0].kind == "code"
    assert Shower().pieces("id", "x1") == [Piece("x1", kind="code")]
    assert Shower().pieces("request", "r 1") == [Piece("r 1", kind="nowrap")]
    assert Shower().pieces("name", "Lab") == [Piece("Lab")]


def test_parameters_of_a_search_are_code_and_without_a_search_there_are_none() -> None:
    assert Shower().pieces("query", "status=final") == [Piece("status", kind="code")]
    assert Shower().pieces("query", None) == []
    assert Shower().pieces("query", "") == []


@pytest.mark.parametrize("name", ["name", "description"])
def test_the_name_of_a_record_in_a_table_leads_to_its_page(name: str) -> None:
    table = Shower(subject="client").table([{name: "Ward", "client_id": "c1"}], columns=[name])

    assert table.rows[0][0] == [Piece("Ward", "/console/operations/clients/c1")]


def test_where_a_result_goes_on_is_no_fact_and_an_empty_secret_is_none() -> None:
    shown = Shower().show({"name": "a", "following": "x", "client_secret": ""})

    assert [one.label for one in shown.facts] == ["Name", "Client secret"]
    assert shown.secrets == []
