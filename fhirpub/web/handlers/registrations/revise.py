"""POST /fhir/r4/{Type}/{id}/$revise (ADR 25)."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from http import HTTPStatus

from fhirpub.interactions.context import Context
from fhirpub.interactions.read import read_whole
from fhirpub.interactions.register import Candidate, Rejected
from fhirpub.interactions.revision.comparison import Revision, Stored, compare, prepare_revision
from fhirpub.interactions.revision.revise import Revised, revise
from fhirpub.interactions.submission.parameters import from_parameters
from fhirpub.storage.contract import Version
from fhirpub.web.handlers.body import BodyHandler
from fhirpub.web.handlers.large_responses import read_version_within_budget
from fhirpub.web.handlers.placement import compute_with
from fhirpub.web.handlers.registrations.preparation import Preparation


class ReviseHandler(BodyHandler):
    """Correct a resource together with its members, under optimistic locking."""

    requires_token = True
    conditions = frozenset({"If-Match", "If-None-Match"})
    scope = "u"
    action = "revise"

    async def post(self, resource_id: str) -> None:
        """Revise."""
        tenant, context = self.caller.tenant, self.services.context

        async def newest_of() -> Version:
            return await read_whole(self.type_name, resource_id, tenant=tenant, context=context)

        await newest_of()  # what is not there is not found, whatever the body is
        conditions = self.request.preconditions_of_update()
        conditions.require_if_match()
        candidate = await self._prepare()
        if self.ticket is not None:
            self.ticket.check_stored(candidate.size)
        revised = await revise(
            candidate,
            newest_of=lambda: read_version_within_budget(self, newest_of),
            check=conditions.check,
            compare=self._compare,
            tenant=tenant,
            context=context,
        )
        await self._respond(revised)

    async def _prepare(self) -> Candidate:
        work = partial(
            prepare_revision,
            is_xml=self.is_xml,
            type_name=self.type_name,
            tenant=self.caller.tenant,
        )
        prepared = await Preparation(self, work, from_parameters, self.take_chunks()).run()
        if isinstance(prepared, Rejected):
            raise prepared.error()
        return prepared

    async def _compare(self, candidate: Version, stored: Stored) -> Revision:
        """Compare where resources of this size are compared."""
        bodies = [
            *(candidate.body, stored.latest.body, candidate.response),
            *(member.body for member in (*candidate.members, *stored.members.values())),
        ]
        work = partial(_compare, candidate=candidate, stored=stored)
        revision = await compute_with(self.services, self.owner, work, bodies)
        if revision.version is None:
            return revision
        wants_nothing = self.return_preference("minimal") == "minimal"
        status = HTTPStatus.NO_CONTENT if wants_nothing else HTTPStatus.OK
        return replace(revision, version=await self.audited(revision.version, status=status))

    async def _respond(self, revised: Revised) -> None:
        await self.note_version(revised.version)
        if revised.created:
            self.note_commit()
            if self.ticket is not None:
                self.ticket.add_stored(revised.version.size)
            await self.keep_pace()
        self.set_location(revised.version)
        self.set_version_headers(revised.version)
        await self.respond_with_parameters(revised.response, HTTPStatus.OK, if_empty=204)


def _compare(context: Context, _body: bytes, *, candidate: Version, stored: Stored) -> Revision:
    return compare(context, candidate, stored)
