"""Tests of updating resources of a type, and of their history."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

from fhirpub.testing.contracts.resource_type.harness import ResourceTypeHarness
from fhirpub.testing.service import Answer, Integrator


class ResourceUpdateContract(ResourceTypeHarness):
    """An update creates the next version, and older versions stay unchanged."""

    def test_an_update_makes_the_next_version(self, lab: Integrator, registered: Answer) -> None:
        path = self.path_of(registered)

        answer = self.update_status(lab, path, If_Match='W/"1"')

        assert (answer.status, answer.body) == (204, b"")
        assert answer.headers["etag"] == 'W/"2"'
        assert lab.get(path).json["meta"]["versionId"] == "2"

    def test_every_status_for_update_is_accepted(
        self, lab: Integrator, registered: Answer
    ) -> None:
        path = self.path_of(registered)

        for status in sorted(self.resource_type.update_statuses):
            assert self.update_status(lab, path, status=status).status == 204, status

    def test_a_stale_update_is_refused_naming_both_versions(
        self, lab: Integrator, registered: Answer
    ) -> None:
        path = self.path_of(registered)
        self.update_status(lab, path)

        answer = self.update_status(lab, path, If_Match='W/"1"')

        assert (answer.status, answer.issues[0]["code"]) == (412, "conflict")
        assert answer.issues[0]["diagnostics"] == "target version 1, current version 2"

    def test_racing_updates_under_one_tag_have_one_winner(
        self, lab: Integrator, registered: Answer
    ) -> None:
        path = self.path_of(registered)

        with ThreadPoolExecutor(16) as pool:
            answers = list(
                pool.map(lambda _n: self.update_status(lab, path, If_Match='W/"1"'), range(16))
            )

        assert sorted(answer.status for answer in answers) == [204] + [412] * 15

    def test_racing_updates_without_a_tag_all_come_through(
        self, lab: Integrator, registered: Answer
    ) -> None:
        path = self.path_of(registered)

        with ThreadPoolExecutor(8) as pool:
            answers = list(pool.map(lambda _n: self.update_status(lab, path), range(16)))

        assert {answer.status for answer in answers} == {204}
        assert sorted(int(answer.headers["etag"][3:-1]) for answer in answers) == list(
            range(2, 18)
        )

    def test_another_field_cannot_be_updated(self, lab: Integrator, registered: Answer) -> None:
        path = self.path_of(registered)
        body = {"resourceType": self.resource_type.name, "language": "es", "identifier": []}

        answer = lab.patch(path, body)

        assert answer.status == 422
        assert {issue["code"] for issue in answer.issues} == {"business-rule"}
        name = self.resource_type.name
        assert answer.issue_expressions == {f"{name}.language", f"{name}.identifier"}

    def test_the_history_has_every_version_newest_first(
        self, lab: Integrator, registered: Answer
    ) -> None:
        path = self.path_of(registered)
        self.update_status(lab, path)

        history = lab.get(f"{path}/_history").json

        versions = [entry["resource"]["meta"]["versionId"] for entry in history["entry"]]
        assert (history["type"], history["total"], versions) == ("history", 2, ["2", "1"])

    def test_an_old_version_stays_as_it_was(self, lab: Integrator, registered: Answer) -> None:
        path = self.path_of(registered)
        before = lab.get(path)
        self.update_status(lab, path)

        assert lab.get(f"{path}/_history/1").body == before.body
