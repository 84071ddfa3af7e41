"""PATCH /fhir/r4/{Type}/{id}, in each of the forms of its body (D-105)."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import replace
from functools import partial
from http import HTTPStatus

from fhirpub.errors import Issue, NoneMatches
from fhirpub.fhir.outcome import outcome_of
from fhirpub.interactions.match import the_match
from fhirpub.interactions.patch_formats import FORMS, Form
from fhirpub.interactions.read import read_whole
from fhirpub.interactions.update import Update, prepare, prepare_cut, update
from fhirpub.problems import ContentProblem
from fhirpub.runtime.stages import run_to_completion
from fhirpub.storage.contract import Version
from fhirpub.tenant import is_member_id
from fhirpub.web.error_mapping import MethodNotAllowed
from fhirpub.web.handlers.body import BodyHandler
from fhirpub.web.handlers.large_responses import read_version_within_budget
from fhirpub.web.handlers.placement import LARGE
from fhirpub.web.message import content_negotiation as media

_NOT_ALONE = "it was registered with another resource, and is corrected together with that one"


class UpdateHandler(BodyHandler):
    """Replace named fields of a resource, under optimistic locking."""

    requires_token = True
    conditions = frozenset({"If-Match", "If-None-Match"})
    scope = "u"
    action = "update"
    also_read = tuple(FORMS)

    async def patch(self, resource_id: str) -> None:
        """Update."""
        tenant, context = self.caller.tenant, self.services.context
        if self.type_name in context.members:
            _refuse_member(resource_id)
        await self.update(
            lambda: read_whole(self.type_name, resource_id, tenant=tenant, context=context)
        )

    async def update(self, newest_of: Callable[[], Awaitable[Version]]) -> None:
        """Update the resource whose newest version ``newest_of`` reads."""
        tenant, context = self.caller.tenant, self.services.context
        chunks = self.take_chunks()

        async def prepared(latest: Version) -> Update:
            form = FORMS.get(self.body_type, "fhir")
            made = await self._prepare_cut(form, chunks, latest)
            if made is None:
                work = partial(
                    prepare, form=form, is_xml=self.is_xml, latest=latest, tenant=tenant
                )
                made = await self.compute_chunks(work, chunks, stored=latest.body)
            if self.ticket is not None:
                self.ticket.check_stored(made.size)
            return replace(made, version=await self.audited(made.version, status=self._status))

        updated = await update(
            newest_of=lambda: read_version_within_budget(self, newest_of),
            check=self.request.preconditions_of_update().check,
            resource_type=self.services.types[self.type_name],
            tenant=tenant,
            context=context,
            prepared=prepared,
        )
        self.note_commit()
        if self.ticket is not None:
            self.ticket.add_stored(updated.version.size)
        await self.keep_pace()
        self.set_location(updated.version)
        self.set_version_headers(updated.version)
        await self._respond_with_update(updated)

    async def _prepare_cut(
        self, form: Form, chunks: list[bytes], latest: Version
    ) -> Update | None:
        """Prepare a body that is small without its documents; None for others."""
        # What a JSON Patch may copy is limited by its bytes: it is computed with all of them.
        if form == "json-patch" or len(latest.body) > LARGE:
            return None
        work = partial(prepare_cut, form=form, latest=latest, tenant=self.caller.tenant)
        return await self.compute_cut(lambda *cut: run_to_completion(work(*cut)), chunks)

    @property
    def _status(self) -> int:
        """The status of the answer, by what the client prefers (D-121)."""
        wanted = self._preference
        has_body = wanted == "OperationOutcome" or (wanted == "representation" and self.may("r"))
        return HTTPStatus.OK if has_body else HTTPStatus.NO_CONTENT

    @property
    def _preference(self) -> str:
        return media.preference(self.request.headers.get("Prefer", ""), "return")

    async def _respond_with_update(self, updated: Update) -> None:
        """Write nothing, or what the client prefers (D-121)."""
        wanted = self._preference
        if self._status == HTTPStatus.NO_CONTENT:
            self.respond_empty()
            return
        self.headers["Preference-Applied"] = f"return={wanted}"
        if wanted == "representation":
            await self.respond_with_version(updated.version)
        else:
            made = f"{updated.version.type} was updated"
            accepted = Issue.information(ContentProblem.ACCEPTED, made)
            outcome = outcome_of(
                [accepted, *updated.remarks], fhir_url=self.services.context.fhir_url
            )
            self.respond_serialized(self.serialize(outcome))


class ConditionalUpdateHandler(UpdateHandler):
    """Update the one resource that the parameters of the URL mean."""

    scope = "us"

    async def patch(self) -> None:  # type: ignore[override] # the path has no blank
        """Update."""
        await self.update(self._matching)

    async def _matching(self) -> Version:
        matching = await the_match(
            self.request.parameters,
            resource_type=self.services.types[self.type_name],
            tenant=self.caller.tenant,
            context=self.services.context,
        )
        if matching is None:
            raise NoneMatches(f"no {self.type_name} matches the condition")
        _refuse_member(matching.id)
        return matching


def _refuse_member(resource_id: str) -> None:
    """Raise MethodNotAllowed for what came with another resource (ADR 24)."""
    if is_member_id(resource_id):
        raise MethodNotAllowed(_NOT_ALONE, allow="GET, HEAD, OPTIONS")
