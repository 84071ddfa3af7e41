"""Refusals: their issues, their texts, their codes, and what never stands in them."""

from __future__ import annotations

import pickle
from collections.abc import Callable

import pytest

from fhirpub import errors
from fhirpub.errors import (
    MAX_ISSUES,
    BrokenRule,
    Busy,
    FhirpubError,
    InvalidContent,
    InvalidSearch,
    Issue,
    NoSuchRecord,
    NoSuchResource,
    NotAuthenticated,
    NotExpressible,
    NotPermitted,
    OtherContent,
    PreconditionRequired,
    QuotaExceeded,
    Refused,
    SearchTooCostly,
    SecretsUnavailable,
    StorageQuotaExceeded,
    StoreUnavailable,
    Throttled,
    TokenRefused,
    TooLarge,
    VersionConflict,
    VersionReplaced,
)
from fhirpub.problems import ContentProblem, OperationProblem, RequestProblem

EMPTY = ContentProblem.BODY_EMPTY


# Issues.


@pytest.mark.parametrize(
    ("make", "severity"),
    [(Issue.error, "error"), (Issue.warning, "warning"), (Issue.information, "information")],
)
def test_an_issue_has_the_first_type_of_its_problem(
    make: Callable[..., Issue], severity: str
) -> None:
    made = make(RequestProblem.SERVICE_BUSY, "said", "place")

    assert (made.severity, made.code, made.diagnostics) == (severity, "transient", "said")
    assert (made.expression, made.details) == ("place", "service-busy")


@pytest.mark.parametrize("make", [Issue.error, Issue.warning])
def test_a_type_that_is_given_comes_before_that_of_the_problem(
    make: Callable[..., Issue],
) -> None:
    assert make(RequestProblem.SERVICE_BUSY, "said", code="throttled").code == "throttled"


def test_an_issue_of_a_plugin_is_a_broken_rule() -> None:
    assert Issue("error", "invalid", "said").details == "rule-broken"


def test_all_places_of_an_issue_are_moved() -> None:
    issue = Issue("warning", "c", "said", "a", "d", ("[1]", ""))

    moved = issue.below("P")

    assert (moved.expression, moved.also_at) == ("P.a", ("P[1]", "P"))
    assert (moved.severity, moved.code, moved.diagnostics, moved.details) == (
        *("warning", "c", "said", "d"),
    )


def test_an_issue_at_another_place_has_no_other_places() -> None:
    assert Issue("error", "c", "said", "a", "d", ("b",)).at("x").also_at == ()


# Refusals with issues.


def test_an_issue_that_repeats_is_named_once_and_a_hundred_at_most() -> None:
    issues = [Issue("error", "c", str(number)) for number in range(MAX_ISSUES + 1)]

    refused = Refused([issues[0], *issues])

    assert refused.issues == tuple(issues[:100])


def test_the_text_of_a_refusal_has_the_places() -> None:
    refused = Refused([Issue("error", "c", "one", "a.b"), Issue("error", "c", "two")])

    assert str(refused) == "a.b: one; two"


@pytest.mark.parametrize(
    ("kind", "code"),
    [
        (InvalidContent, "exception"),
        (BrokenRule, "business-rule"),
        (TooLarge, "too-costly"),
        (InvalidSearch, "invalid"),
        (SearchTooCostly, "too-costly"),
    ],
)
def test_each_kind_has_its_usual_code(kind: type[Refused], code: str) -> None:
    (usual,) = kind.because("said", details=EMPTY, expression="a").issues
    (given,) = kind.because("said", details=EMPTY, code="lock-error").issues

    assert (usual.code, usual.severity, usual.expression) == (code, "error", "a")
    assert (usual.details, given.code) == ("body-empty", "lock-error")


def test_a_refusal_comes_back_from_another_process() -> None:
    refused = InvalidContent.because("said", details=EMPTY, expression="a")

    again = pickle.loads(pickle.dumps(refused))

    assert (type(again), again.issues, str(again)) == (InvalidContent, refused.issues, "a: said")


def test_a_search_beyond_its_budget_is_too_costly() -> None:
    (issue,) = SearchTooCostly.beyond_budget().issues

    assert issue.details == OperationProblem.SEARCH_TOO_COSTLY
    assert issue.diagnostics == "the search takes more work than one search may: narrow it"


# Other refusals.


@pytest.mark.parametrize(
    ("problem", "details", "text"),
    [
        (NoSuchResource("Patient", "1"), "resource-unknown", "Patient/1 was not found"),
        (NoSuchRecord("client", "1"), "record-unknown", "there is no client 1"),
        (
            VersionConflict(target="2", current=1),
            "version-conflict",
            "target version 2, current version 1",
        ),
        (
            VersionReplaced(target="2", current=3),
            "version-conflict",
            "target version 2, current version 3",
        ),
        (
            OtherContent("Patient/1", ["a", "b"]),
            "identifier-in-use",
            "Patient/1 has this identifier with other content; what differs: a, b",
        ),
        (
            OtherContent("Patient/1", []),
            "identifier-in-use",
            "Patient/1 has this identifier with other content",
        ),
        (NotPermitted(), "scope-missing", "the access token has no scope for this"),
        (
            NotPermitted("webhooks.read"),
            "scope-missing",
            "the access token has no scope for this: webhooks.read",
        ),
        (Throttled(retry_after=5), "rate-limited", "too many requests, try again in 5 s"),
        (
            QuotaExceeded("q", retry_after=5),
            "quota-used-up",
            "the quota q is used up, try again in 5 s",
        ),
        (
            StorageQuotaExceeded("q"),
            "storage-quota-used-up",
            "the quota q is used up: ask the operator of the service",
        ),
        (
            Busy(retry_after=5),
            "service-busy",
            "too many large requests at the moment, send the same request again",
        ),
        (
            StoreUnavailable("secret"),
            "store-unavailable",
            "the store is not available at the moment, send the same request again",
        ),
        (
            SecretsUnavailable("secret"),
            "webhooks-unavailable",
            "webhooks cannot be used at the moment: the operator has to set their key",
        ),
        (
            NotExpressible("a.b"),
            "format-unsupported",
            "this resource cannot be written as XML: ask for application/fhir+json",
        ),
    ],
    ids=lambda value: type(value).__name__ if isinstance(value, Exception) else None,
)
def test_a_refusal_has_its_code_and_its_text(
    problem: FhirpubError, details: str, text: str
) -> None:
    assert (str(problem.details), str(problem)) == (details, text)


@pytest.mark.parametrize(
    ("kind", "details"),
    [
        ("FhirpubError", "internal-error"),
        ("PreconditionRequired", "precondition-required"),
        ("NotPossible", "not-possible"),
        ("SeveralMatch", "several-matches"),
        ("NoneMatches", "no-match"),
    ],
)
def test_each_kind_without_issues_has_its_code(kind: str, details: str) -> None:
    assert str(getattr(errors, kind).details) == details


def test_what_is_required_is_said_with_examples() -> None:
    said = str(PreconditionRequired())

    assert 'If-Match: W/"3"' in said
    assert "If-Match: *" in said


@pytest.mark.parametrize(
    ("problem", "seconds"),
    [
        (StoreUnavailable("r"), 1),
        (StoreUnavailable("r", retry_after=7), 7),
        (Busy(retry_after=5), 5),
        (QuotaExceeded("q", retry_after=6), 6),
    ],
    ids=["usual", "given", "busy", "quota"],
)
def test_what_passes_has_a_time_to_retry(
    problem: StoreUnavailable | Busy | QuotaExceeded, seconds: int
) -> None:
    assert problem.retry_after == seconds


def test_reasons_are_for_the_log_and_words_for_the_caller() -> None:
    refused = NotAuthenticated("reason", "words", RequestProblem.RATE_LIMITED, token_sent=True)

    assert (refused.reason, str(refused), refused.token_sent) == ("reason", "words", True)
    assert refused.details == "rate-limited"


def test_a_refused_token_has_its_word_and_challenges_only_who_tried() -> None:
    usual = TokenRefused("invalid_client", "words")
    tried = TokenRefused("invalid_client", "words", challenge=True, client="c")

    assert (usual.error, str(usual), usual.challenge, usual.client) == (
        *("invalid_client", "words", False, ""),
    )
    assert (tried.challenge, tried.client) == (True, "c")


@pytest.mark.parametrize(
    ("kind", "parent"),
    [
        ("VersionReplaced", "VersionConflict"),
        ("QuotaExceeded", "Throttled"),
        ("PluginError", "ConfigurationError"),
        ("InvalidContent", "Refused"),
        ("StorageQuotaExceeded", "FhirpubError"),
    ],
)
def test_refusals_are_caught_by_their_kind(kind: str, parent: str) -> None:
    assert issubclass(getattr(errors, kind), getattr(errors, parent))
