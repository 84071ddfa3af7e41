"""Any sequence of calls by two tenants behaves like a model made of dictionaries.

With ``HYPOTHESIS=long`` in the environment there are far more sequences, new ones each time.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any
from urllib.parse import quote

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

from fhirpub.config.loader import variable
from fhirpub.testing.service import Answer, Integrator, RunningService
from tests.bodies import SYSTEM, document, register_body

_LONG = variable("HYPOTHESIS") == "long"
_SEQUENCES = settings(
    max_examples=1000 if _LONG else 40,
    stateful_step_count=60 if _LONG else 25,
    derandomize=not _LONG,
    deadline=None,
    database=None,
    suppress_health_check=list(HealthCheck),
)
_REPORTS = "/fhir/r4/DiagnosticReport"
_REWRITTEN = {"id", "meta", "subject", "performer"}
_FIRST_STATUSES = ["registered", "partial", "preliminary", "final", "unknown"]
_LATER_STATUSES = ["partial", "final", "amended", "corrected", "cancelled", "entered-in-error"]

tenant = st.integers(0, 1)
which = st.sampled_from(["a", "A", "a b", "a|b", "ä,\\$", "%41"])
documents = st.lists(
    st.sampled_from([document(b"%PDF-1"), document(b"%PDF-2"), {"url": "https://x.example/d"}]),
    min_size=1,
    max_size=2,
)
conclusions = st.sampled_from(["", "better", "worse", "ñ💉"]).filter(bool)


@dataclass
class Report:
    """The model's state of a report: the contents of each version."""

    path: str
    answer: bytes
    versions: list[dict[str, Any]] = field(default_factory=list)

    @property
    def latest(self) -> int:
        return len(self.versions)


def check_holds(answer: Answer, wanted: dict[str, Any], version: int) -> None:
    """Assert that a response is a version with these elements, no more and no fewer."""
    assert answer.status == 200, answer.body
    read = answer.json
    assert answer.headers["etag"] == f'W/"{version}"'
    assert read["meta"]["versionId"] == str(version)
    assert {name: item for name, item in read.items() if name not in _REWRITTEN} == wanted


class Tenants(RuleBasedStateMachine):
    """Two tenants, the service, and the dictionaries that it is compared with."""

    service: RunningService

    def __init__(self) -> None:
        super().__init__()
        self.labs: list[Integrator] = [self.service.integrator() for _ in range(2)]
        self.reports: list[dict[str, Report]] = [{}, {}]

    @rule(
        tenant=tenant,
        value=which,
        status=st.sampled_from(_FIRST_STATUSES),
        documents=documents,
    )
    def register(self, tenant: int, value: str, status: str, documents: list[Any]) -> None:
        body = register_body(value, status=status, presentedForm=documents)
        answer = self.labs[tenant].register(body)
        assert answer.status == 201, answer.body
        known = self.reports[tenant].get(value)
        if known is not None:
            assert answer.body == known.answer
            assert answer.headers["etag"] == 'W/"1"'
            return
        location = answer.headers["location"].removeprefix(self.service.base_url)
        sent = body["parameter"][2]["resource"]
        first = {name: item for name, item in sent.items() if name not in _REWRITTEN}
        path = location.removesuffix("/_history/1")
        self.reports[tenant][value] = Report(path, answer.body, [first])

    @rule(tenant=tenant, value=which)
    def resubmit_after_all_that_happened(self, tenant: int, value: str) -> None:
        known = self.reports[tenant].get(value)
        if known is not None:
            assert self.labs[tenant].register(register_body(value)).body == known.answer

    @rule(tenant=tenant, value=which)
    def read(self, tenant: int, value: str) -> None:
        known = self.reports[tenant].get(value)
        if known is not None:
            check_holds(self.labs[tenant].get(known.path), known.versions[-1], known.latest)

    @rule(tenant=tenant, value=which, version=st.integers(0, 6))
    def vread(self, tenant: int, value: str, version: int) -> None:
        known = self.reports[tenant].get(value)
        if known is None:
            return
        answer = self.labs[tenant].get(f"{known.path}/_history/{version}")
        if 1 <= version <= known.latest:
            check_holds(answer, known.versions[version - 1], version)
        else:
            assert answer.status == 404

    @rule(
        tenant=tenant,
        value=which,
        tag=st.sampled_from(["right", "stale", "future", "none", "any", "list"]),
        patch=st.fixed_dictionaries(
            {"status": st.sampled_from(_LATER_STATUSES)},
            optional={"conclusion": conclusions, "presentedForm": documents},
        ),
    )
    def patch(self, tenant: int, value: str, tag: str, patch: dict[str, Any]) -> None:
        known = self.reports[tenant].get(value)
        if known is None:
            return
        headers = self._if_match(tag, known.latest)
        body = {"resourceType": "DiagnosticReport", **patch}
        answer = self.labs[tenant].patch(known.path, body, **headers)
        if tag in ("stale", "future"):
            assert answer.status == 412, answer.body
            assert str(known.latest) in answer.issues[0]["diagnostics"]
            return
        assert (answer.status, answer.body) == (204, b"")
        known.versions.append({**known.versions[-1], **patch})
        assert answer.headers["etag"] == f'W/"{known.latest}"'

    @staticmethod
    def _if_match(tag: str, latest: int) -> dict[str, str]:
        tags = {
            "right": f'W/"{latest}"',
            "stale": f'W/"{latest - 1}"',
            "future": f'W/"{latest + 1}"',
            "any": "*",
            "list": f'"0", W/"{latest}"',
        }
        return {"If_Match": tags[tag]} if tag in tags else {}

    @rule(tenant=tenant, value=which)
    def search_by_identifier(self, tenant: int, value: str) -> None:
        token = SYSTEM + "|" + "".join(f"\\{c}" if c in "\\,|$" else c for c in value)
        bundle = self.labs[tenant].get(f"{_REPORTS}?identifier={quote(token, safe='')}").json
        known = self.reports[tenant].get(value)
        assert bundle["total"] == (known is not None)
        if known is not None:
            (entry,) = bundle["entry"]
            assert entry["fullUrl"].endswith(known.path)
            assert entry["resource"]["meta"]["versionId"] == str(known.latest)
            assert entry["resource"]["status"] == known.versions[-1]["status"]

    @rule(tenant=tenant, count=st.integers(1, 4))
    def page_through_all(self, tenant: int, count: int) -> None:
        found: list[str] = []
        link: str | None = f"{_REPORTS}?_count={count}"
        while link is not None:
            bundle = self.labs[tenant].get(link).json
            assert bundle["total"] == len(self.reports[tenant])
            found += [entry["fullUrl"] for entry in bundle.get("entry", ())]
            following = [item["url"] for item in bundle["link"] if item["relation"] == "next"]
            link = following[0] if following else None
        paths = [name.removeprefix(self.service.base_url) for name in found]
        assert sorted(paths) == sorted(report.path for report in self.reports[tenant].values())

    @rule(tenant=tenant, value=which)
    def history(self, tenant: int, value: str) -> None:
        known = self.reports[tenant].get(value)
        if known is None:
            return
        bundle = self.labs[tenant].get(f"{known.path}/_history").json
        assert bundle["total"] == known.latest
        tags = [entry["response"]["etag"] for entry in bundle["entry"]]
        assert tags == [f'W/"{n}"' for n in range(known.latest, 0, -1)][:20]
        statuses = [entry["resource"]["status"] for entry in bundle["entry"]]
        assert statuses == [version["status"] for version in reversed(known.versions)][:20]

    @precondition(lambda self: any(self.reports))
    @rule(value=which, owner=tenant)
    def no_tenant_sees_the_others_reports(self, value: str, owner: int) -> None:
        known = self.reports[owner].get(value)
        if known is None:
            return
        other = self.labs[1 - owner]
        patch = {"resourceType": "DiagnosticReport", "status": "final"}
        for path in (known.path, f"{known.path}/_history", f"{known.path}/_history/1"):
            assert other.get(path).status == 404
        assert other.patch(known.path, patch).status == 404

    @invariant()
    def no_two_reports_share_an_id(self) -> None:
        paths = [report.path for mine in self.reports for report in mine.values()]
        assert len(paths) == len(set(paths))


def test_any_sequence_of_calls_agrees_with_the_model(service: RunningService) -> None:
    machine = type("Machine", (Tenants,), {"service": service})

    run_state_machine_as_test(machine, settings=_SEQUENCES)
