"""The trial of what is registered already: what would refuse it today does not."""

from __future__ import annotations

from dataclasses import replace

import pytest

from fhirpub.errors import Issue
from fhirpub.interactions.validate import add_verdict
from fhirpub.problems import ContentProblem
from fhirpub.storage.sqlite.store import SqliteStore
from tests.bodies import register_body
from tests.unit.interactions.erasure.registered import TENANT, context_of, registered
from tests.unit.interactions.test_validate import TYPE, compared, tried

WRONG = Issue.error(ContentProblem.RULE_BROKEN, "is wrong since", "status")
REMARK = Issue.warning(ContentProblem.RULE_BROKEN, "is strange", "code")


@pytest.mark.parametrize("is_same", [True, False])
async def test_only_other_content_is_refused_by_rules_that_came_since(
    store: SqliteStore, *, is_same: bool
) -> None:
    await registered(store, register_body("R-1"))
    trial = replace(
        tried(store, register_body("R-1", **({} if is_same else {"conclusion": "x"}))),
        found=[WRONG, REMARK],
        version=None,
    )

    found = await add_verdict(
        trial, tenant=TENANT, type_name=TYPE, context=context_of(store), compare=compared
    )

    if is_same:
        assert [issue.severity for issue in found] == ["information", "warning"]
        assert found[1] == REMARK
    else:
        assert found == [WRONG, REMARK]
