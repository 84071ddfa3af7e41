"""Every refusal, in words without HTTP: what is wrong, where, and for how long.

The tree (``web/error_mapping.py`` gives each class its status):

    FhirpubError
    ├── Refused                      carries issues
    │   ├── InvalidContent           the body alone is wrong (R-A: 400)
    │   ├── BrokenRule               each field is fine, a rule between them is not (R-A: 422)
    │   ├── TooLarge                 more bytes than the limits allow
    │   ├── InvalidSearch            a search value that cannot be read
    │   └── SearchTooCostly          a search that asks for more than one search may
    ├── NotExpressible               a stored resource has no form in the format asked for
    ├── NoSuchResource               unknown, or another tenant's: indistinguishable
    ├── NoSuchRecord                 a tenant, a client, a key, an endpoint: none that is visible
    ├── VersionConflict              the caller's version is not the latest
    │   └── VersionReplaced          it was, and another one has followed
    ├── PreconditionRequired         the caller does not state which version it means
    ├── NotPossible                  the state of what an operator means does not allow it
    ├── OtherContent                 the identifier is registered with other content
    ├── SeveralMatch                 a condition that must mean one resource means several
    ├── NoneMatches                  a condition means no resource of this tenant
    ├── NotAuthenticated             no token, or one that proves nothing
    ├── NotPermitted                 a good token without the right
    ├── Throttled                    too many requests; with a time to retry
    │   └── QuotaExceeded            a quota of the tenant or the client is used up for now
    ├── StorageQuotaExceeded         the tenant stores as much as its quota allows
    ├── Busy                         too many large bodies; with a time to retry
    ├── TokenRefused                 the token endpoint's own errors (RFC 6749)
    ├── StoreUnavailable             the store cannot answer now
    ├── SecretsUnavailable           the secrets of an endpoint cannot be encrypted or decrypted
    └── ConfigurationError           the operator's settings are wrong
        └── PluginError              a plugin is
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Literal, Self

from fhirpub.problems import ContentProblem, OperationProblem, Problem, RequestProblem

Severity = Literal["fatal", "error", "warning", "information"]
MAX_ISSUES, MAX_PLACES = 100, 100
"""The maximum number of issues in one refusal, and of places of one issue."""


@dataclass(frozen=True, slots=True)
class Issue:
    """One problem to report to the caller: the source of an ``OperationOutcome.issue``.

    ``code`` is of the R4 value set issue-type. ``expression`` is the FHIRPath of the element, or
    empty if there is no place to point at; ``also_at`` are further places of the same problem.
    ``diagnostics`` is a stable English sentence without any value out of the resource, but for
    the URL of a code system (D-143). ``details`` is our own code for the kind of problem: one of
    :mod:`fhirpub.problems`, or one that the resource type declares; only plugins leave it out.
    """

    severity: Severity
    code: str
    diagnostics: str
    expression: str = ""
    details: str = ContentProblem.RULE_BROKEN
    also_at: tuple[str, ...] = ()

    @classmethod
    def error(cls, problem: Problem, diagnostics: str, at: str = "", *, code: str = "") -> Issue:
        """Return an error; ``code`` is the first one of the problem, unless it is given."""
        return cls("error", code or problem.types[0], diagnostics, at, problem)

    @classmethod
    def warning(cls, problem: Problem, diagnostics: str, at: str = "", *, code: str = "") -> Issue:
        """Return a warning, in the same way."""
        return cls("warning", code or problem.types[0], diagnostics, at, problem)

    @classmethod
    def information(cls, problem: Problem, diagnostics: str, at: str = "") -> Issue:
        """Return a remark that asks for nothing."""
        return cls("information", problem.types[0], diagnostics, at, problem)

    def below(self, prefix: str) -> Issue:
        """Return this issue with its places seen from ``prefix``."""
        return self.moved(lambda place: _joined(prefix, place))

    def at(self, expression: str, *more: str) -> Issue:
        """Return this issue with other places."""
        return Issue(self.severity, self.code, self.diagnostics, expression, self.details, more)

    def moved(self, move: Callable[[str], str]) -> Issue:
        """Return this issue with each of its places as ``move`` returns it."""
        return self.at(move(self.expression), *map(move, self.also_at))


def _joined(prefix: str, place: str) -> str:
    separator = "" if not place or place.startswith("[") else "."
    return f"{prefix}{separator}{place}"


class FhirpubError(Exception):
    """The root of every refusal. ``details`` is the kind of problem of those without issues."""

    details: Problem = RequestProblem.INTERNAL_ERROR


class Refused(FhirpubError):
    """A refusal with its issues: what is wrong in one stage, a hundred at most."""

    usual_code = "exception"

    def __init__(self, issues: Iterable[Issue]) -> None:
        self.issues = tuple(dict.fromkeys(issues))[:MAX_ISSUES]
        texts = (f"{i.expression}: {i.diagnostics}".removeprefix(": ") for i in self.issues)
        super().__init__("; ".join(texts))

    def __reduce__(self) -> tuple[type[Self], tuple[tuple[Issue, ...]]]:
        """Pickle the issues, from which the text follows."""
        return type(self), (self.issues,)

    @classmethod
    def because(
        cls,
        diagnostics: str,
        *,
        details: Problem,
        expression: str = "",
        code: str = "",
    ) -> Self:
        """Refuse for one reason, of the class's usual code unless another is given."""
        return cls([Issue.error(details, diagnostics, expression, code=code or cls.usual_code)])


class InvalidContent(Refused):
    """The body alone, read against FHIR and the published field tables, is wrong (R-A)."""


class BrokenRule(Refused):
    """Each field is valid on its own; a cross-field, tenant or service rule fails (R-A)."""

    usual_code = "business-rule"


class TooLarge(Refused):
    """The body, or one document in it, is larger than the limits allow."""

    usual_code = "too-costly"


class InvalidSearch(Refused):
    """A search parameter has a value or a modifier that cannot be honoured (D-133)."""

    usual_code = "invalid"


class SearchTooCostly(Refused):
    """A search has more values, or takes more work, than one search may (D-289, D-290).

    It is no failure of the store, which has ended the search and answers others.
    """

    usual_code = "too-costly"

    @classmethod
    def beyond_budget(cls) -> Self:
        """Refuse a search that the store has ended."""
        rule = "the search takes more work than one search may: narrow it"
        return cls.because(rule, details=OperationProblem.SEARCH_TOO_COSTLY)


class NotExpressible(FhirpubError):
    """XML has no form for a resource; ``place`` is the FHIRPath within it where it fails."""

    details = RequestProblem.FORMAT_UNSUPPORTED

    def __init__(self, place: str) -> None:
        super().__init__("this resource cannot be written as XML: ask for application/fhir+json")
        self.place = place


class NoSuchResource(FhirpubError):
    """Nothing with this id is visible to this tenant (D-24)."""

    details = RequestProblem.RESOURCE_UNKNOWN

    def __init__(self, type_name: str, resource_id: str) -> None:
        super().__init__(f"{type_name}/{resource_id} was not found")


class NoSuchRecord(FhirpubError):
    """A tenant, client, key, endpoint or delivery that the caller cannot see was named."""

    details = RequestProblem.RECORD_UNKNOWN

    def __init__(self, kind: str, record_id: str) -> None:
        super().__init__(f"there is no {kind} {record_id}")
        self.kind, self.record_id = kind, record_id


class VersionConflict(FhirpubError):
    """The caller means another version than there is (D-116, D-117)."""

    details = RequestProblem.VERSION_CONFLICT

    def __init__(self, *, target: str, current: int | str) -> None:
        super().__init__(f"target version {target}, current version {current}")


class VersionReplaced(VersionConflict):
    """The caller means a version that another one has followed."""


class PreconditionRequired(FhirpubError):
    """The caller must state which version it means, and does not (RFC 6585, 3)."""

    details = RequestProblem.PRECONDITION_REQUIRED

    def __init__(self) -> None:
        super().__init__(
            "If-Match is required: send the ETag of the version that was read, such as "
            'If-Match: W/"3", or If-Match: * for whichever version is the latest'
        )


class NotPossible(FhirpubError):
    """What an operator asks for is not possible in the state that there is."""

    details = OperationProblem.NOT_POSSIBLE


class OtherContent(FhirpubError):
    """The identifier is registered with other content, and the operator has this refused."""

    details = ContentProblem.IDENTIFIER_IN_USE

    def __init__(self, resource: str, elements: Iterable[str]) -> None:
        names = ", ".join(elements)
        differing = f"; what differs: {names}" if names else ""
        super().__init__(f"{resource} has this identifier with other content{differing}")


class SeveralMatch(FhirpubError):
    """A condition that must mean one resource means several (R4 http)."""

    details = RequestProblem.SEVERAL_MATCHES


class NoneMatches(FhirpubError):
    """A condition means no resource of this tenant."""

    details = RequestProblem.NO_MATCH


class NotAuthenticated(FhirpubError):
    """The request authenticates no client. ``reason`` is for the log, ``said`` for the caller."""

    def __init__(self, reason: str, said: str, details: Problem, *, token_sent: bool) -> None:
        super().__init__(said)
        self.reason, self.details, self.token_sent = reason, details, token_sent


class NotPermitted(FhirpubError):
    """The token is good but lacks the right (D-23), which ``scope`` would give if it is named."""

    details = RequestProblem.SCOPE_MISSING

    def __init__(self, scope: str = "") -> None:
        super().__init__(f"the access token has no scope for this{scope and f': {scope}'}")
        self.scope = scope


class Throttled(FhirpubError):
    """Too many requests; the caller may come back after ``retry_after`` seconds."""

    details = RequestProblem.RATE_LIMITED

    def __init__(self, *, retry_after: int, client: str = "") -> None:
        super().__init__(f"too many requests, try again in {retry_after} s")
        self.retry_after = retry_after
        self.client = client  # as it claims to be, where clients prove who they are


class QuotaExceeded(Throttled):
    """The request is beyond a quota of the tenant or the client (D-292)."""

    details = RequestProblem.QUOTA_USED_UP

    def __init__(self, quota: str, *, retry_after: int) -> None:
        super().__init__(retry_after=retry_after)
        self.args = (f"the quota {quota} is used up, try again in {retry_after} s",)
        self.quota = quota


class StorageQuotaExceeded(FhirpubError):
    """The tenant would store more than its quota allows, now and later (D-296)."""

    details = RequestProblem.STORAGE_QUOTA_USED_UP

    def __init__(self, quota: str) -> None:
        super().__init__(f"the quota {quota} is used up: ask the operator of the service")
        self.quota = quota


class Busy(FhirpubError):
    """Too many large requests are in flight; the client may retry after some seconds."""

    details: Problem = RequestProblem.SERVICE_BUSY

    def __init__(self, *, retry_after: int) -> None:
        super().__init__("too many large requests at the moment, send the same request again")
        self.retry_after = retry_after


class TokenRefused(FhirpubError):
    """The token endpoint refuses with ``error``, a word of RFC 6749 section 5.2 (D-25 to D-29)."""

    def __init__(
        self, error: str, description: str, *, challenge: bool = False, client: str = ""
    ) -> None:
        super().__init__(description)
        self.error, self.client = error, client  # as it claims to be
        self.challenge = challenge  # it tried HTTP Basic, and must be answered in kind


class StoreUnavailable(FhirpubError):
    """The store cannot answer now; the same request may be sent again after ``retry_after`` s."""

    details = RequestProblem.STORE_UNAVAILABLE

    def __init__(self, reason: str, *, retry_after: int = 1) -> None:
        super().__init__("the store is not available at the moment, send the same request again")
        self.reason = reason
        self.retry_after = retry_after


class SecretsUnavailable(FhirpubError):
    """The secrets of webhooks' endpoints cannot be used. ``reason`` is for the operator only."""

    details = RequestProblem.WEBHOOKS_UNAVAILABLE
    text = "webhooks cannot be used at the moment: the operator has to set their key"

    def __init__(self, reason: str) -> None:
        super().__init__(self.text)
        self.reason = reason


class ConfigurationError(FhirpubError):
    """The settings are wrong; the text names the key and what would be right."""


class PluginError(ConfigurationError):
    """A plugin cannot be used; the text names it and the reason."""
