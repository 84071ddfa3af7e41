"""POST /fhir/r4/{Type}/$register and POST /fhir/r4/{Type}."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import cached_property, partial

from fhirpub.interactions.erased import first_version, number_after
from fhirpub.interactions.match import the_match
from fhirpub.interactions.register import (
    Candidate,
    Prepared,
    Received,
    Registration,
    find_first,
    prepare_registration,
    read_numbered,
    receive_registration,
    register,
    repeats,
    reserve_nothing,
    validate_registration,
)
from fhirpub.interactions.submission.contained import from_contained
from fhirpub.interactions.submission.held import ReadBody
from fhirpub.interactions.submission.parameters import from_parameters
from fhirpub.runtime.stages import Stages, yield_to_loop
from fhirpub.storage.contract import Version
from fhirpub.web.handlers.body import BodyHandler
from fhirpub.web.handlers.placement import joined
from fhirpub.web.handlers.registrations.comparison import replay_headers, report_other_content
from fhirpub.web.handlers.registrations.preparation import Preparation
from fhirpub.web.message.request import parameters_of

_OF_THE_ANSWER = ("_format", "_pretty")


class RegisterHandler(BodyHandler):
    """Register a resource with its parts; the answer is the first one, for ever."""

    requires_token = True
    scope = "c"
    action = "register"
    read_body: ReadBody = staticmethod(from_parameters)

    async def post(self) -> None:
        """Register."""
        registration = await self._register()
        if not registration.created:  # else requests committed together continue together
            await yield_to_loop()
        if registration.created:
            self.note_commit()
            await self.keep_pace()
        else:
            await self.note_version(registration.first)
        if registration.repeated is not None:
            await report_other_content(self, registration.first, registration.repeated)
        self.services.metrics.count_registration(self.type_name, created=registration.created)
        self.headers.update(replay_headers(registration))
        self.set_location(registration.first)
        self.set_version_headers(registration.first, registration=True)
        await self.respond_with_registration(registration)

    async def _register(self) -> Registration:
        """Register; a small body that repeats what is registered is not validated again."""
        prepared = await self._prepare()
        if isinstance(prepared, Registration):
            return prepared
        candidate, first = prepared
        if isinstance(candidate, Candidate):
            version = await self.audited(candidate.version, status=201)
            candidate = replace(candidate, version=version)
        return await register(
            candidate,
            first,
            tenant=self.caller.tenant,
            context=self.services.context,
            reserve=self.ticket.reserve_registration if self.ticket else reserve_nothing,
        )

    async def _prepare(self) -> Registration | tuple[Prepared, Version | None]:
        """Return what is to be stored, and what is registered; or a repetition at once.

        The body and what was read from it are no longer held then.
        """
        tenant, context, chunks = self.caller.tenant, self.services.context, self.take_chunks()
        prepare = partial(
            prepare_registration, is_xml=self.is_xml, type_name=self.type_name, tenant=tenant
        )
        preparation = Preparation(self, prepare, self.read_body, chunks)
        if not self.is_for_loop(chunks):  # what is computed elsewhere goes there once
            prepared = await preparation.run()
            first = await first_version(context.resources, tenant.id, prepared.id)
            number = number_after(first)
            if number > 1 and isinstance(prepared, Candidate):  # known only now
                read_body = partial(read_numbered, read=self.read_body, number=number)
                prepared = await Preparation(self, prepare, read_body, chunks).run()
            return prepared, first
        received = await self.run_on_loop(self._receive(chunks))
        first = await find_first(received.key, tenant=tenant, context=context)
        if repeats(first, received.submission.digest):
            return Registration(first, created=False, same=True)
        received = received.numbered(number_after(first))
        preparation = replace(preparation, read_body=received.read_body)  # if it is read again
        stages = validate_registration(context, received, tenant=tenant)
        return await preparation.complete(await self.run_on_loop(stages)), first

    def _receive(self, chunks: Sequence[bytes]) -> Stages[Received]:
        return receive_registration(
            self.services.context,
            joined(chunks),
            is_xml=self.is_xml,
            read_body=self.read_body,
            type_name=self.type_name,
        )

    async def respond_with_registration(self, registration: Registration) -> None:
        """Write the Parameters, or what the client prefers (D-74)."""
        status = self.status_of(registration)
        await self.respond_with_parameters(registration.first.response, status, if_empty=status)

    def status_of(self, _registration: Registration) -> int:
        """Return the status of an answer: a repetition gets that of the first."""
        return 201


class CreateHandler(RegisterHandler):
    """Create: the same registration for a resource that contains its parts (D-5)."""

    conditions = frozenset({"If-None-Exist"})
    read_body: ReadBody = staticmethod(from_contained)

    def is_permitted(self) -> bool:
        """Require search permission for a conditional create: its response reveals what exists."""
        return super().is_permitted() and (self._condition is None or self.may("s"))

    def needed_scope(self) -> str:
        """Return the scope, with the right to search for a conditional create."""
        return super().needed_scope() + ("" if self._condition is None else "s")

    async def post(self) -> None:
        """Register, unless the client describes one that is there (D-183)."""
        if not await self._answer_with_match():
            await super().post()

    async def _answer_with_match(self) -> bool:
        condition = self._condition
        if condition is None:
            return False
        match = await the_match(
            condition,
            resource_type=self.services.types[self.type_name],
            tenant=self.caller.tenant,
            context=self.services.context,
        )
        if match is None:
            return False
        await self.note_version(match)
        self.set_location(match)
        self.set_version_headers(match)
        wanted = self.return_preference("minimal", "representation")
        if wanted == "minimal" or not self.may("r"):
            self.respond_empty(status=200)
        else:
            await self.respond_with_version(match)
        return True

    @cached_property
    def _condition(self) -> list[tuple[str, str]] | None:
        """What must not be there, by If-None-Exist and by the URL (D-181)."""
        header = ",".join(self.request.headers.get_list("If-None-Exist"))
        of_url = [
            parameter
            for parameter in self.request.parameters
            if parameter[0] not in _OF_THE_ANSWER
        ]
        if not header and not of_url:
            return None
        return [*parameters_of(_query_of(header)), *of_url]

    def status_of(self, registration: Registration) -> int:
        """Return 200 when a conditional create lost the race, otherwise 201."""
        conditional = self._condition is not None
        return 200 if conditional and not registration.created else 201

    async def respond_with_registration(self, registration: Registration) -> None:
        """Write the resource as it was registered."""
        if self.return_preference("representation") in ("minimal", "OperationOutcome"):
            await super().respond_with_registration(registration)
            return
        await self.respond_with_version(registration.first, status=self.status_of(registration))


def _query_of(condition: str) -> str:
    """Return the parameters of a condition, before which clients may write an address."""
    address, _, query = condition.partition("?")
    return query if query and "=" not in address else condition
