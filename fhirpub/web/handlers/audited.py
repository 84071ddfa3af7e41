"""Records each response in the audit trail before it is sent, or within a second (ADR 35)."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Awaitable, Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from functools import partial
from http import HTTPStatus
from typing import ClassVar

from fhirpub.audit.record import (
    BEGUN,
    encode_request,
    form_query,
    name_of,
    patients_in,
    shared_members,
)
from fhirpub.audit.trail import AuditTrail
from fhirpub.errors import StoreUnavailable
from fhirpub.interactions.versions import with_trace
from fhirpub.storage.contract import Version
from fhirpub.web.handlers.lifecycle import RequestLifecycle
from fhirpub.web.message.response_body import ResponseBody
from fhirpub.web.observed import our_name

_ID = re.compile(r"[A-Za-z0-9.:-]{1,64}")
_SMALL_BYTES = 256 * 1024
"""Patients in so much are found in less than a millisecond."""
_LISTED = re.compile(rb'\{"resourceType":"(\w+)","id":"([A-Za-z0-9.-]{1,64})"')
"""How a stored resource begins."""


class AuditedRequest(RequestLifecycle):
    """Leaves a record of each response of a handler that names an action.

    A handler notes the resources that its response is about (`note_version`, `note_stored`). The
    record of a write is part of its version (`audited`), and the response leaves no other.
    """

    action: ClassVar[str] = ""
    """What the handler does, as records name it; empty: it leaves none."""
    audits_refusals_only: ClassVar[bool] = False
    """Whether only a refusal is recorded: the parts of the request leave records of their own."""
    is_announced: ClassVar[bool] = False
    """Whether a durable record comes before the change too, which is not part of a commit."""
    claimed: str = ""
    """The client that a refused request claims to come from, or whose token it came with."""
    _what: tuple[str, ...] = ()
    _patients: tuple[str, ...] = ()
    _is_recorded = False

    def note(self, *names: str) -> None:
        """Note what the response is about, by name."""
        self._what = names

    async def note_version(self, version: Version) -> None:
        """Note a version that the response is about."""
        if self.services.audit is None:
            return
        self._what = (name_of(version.type, version.id, version.version),)
        body = version.body
        if len(body) <= _SMALL_BYTES:
            self._patients = patients_in((body,))
        else:
            self._patients = await self._patients_in((body,))
        if version.type == "Patient":
            self._patients = (name_of("Patient", version.id), *self._patients)

    async def note_stored(self, bodies: Sequence[bytes]) -> None:
        """Note stored resources that the response lists."""
        begun = filter(None, map(_LISTED.match, bodies))
        self._what = tuple(f"{match[1].decode()}/{match[2].decode()}" for match in begun)
        patients = [name for name in self._what if name.startswith("Patient/")]
        self._patients = tuple(dict.fromkeys([*patients, *await self._patients_in(bodies)]))

    async def audited(self, version: Version, *, status: int = 200) -> Version:
        """Return a version that was just made with the record of its write, and its trace."""
        if self.trace is not None:
            version = replace(version, events=with_trace(version.events, self.trace.header))
        if self.services.audit is None:
            return version
        patients = await self._patients_in((version.body,))
        record = encode_request(self._shared(status), self.request_id, patients=patients)
        return replace(version, audit=record)

    async def note_patients(self, bodies: Sequence[bytes]) -> None:
        """Note the patients in what the response shows."""
        self._patients = await self._patients_in(bodies)

    async def _patients_in(self, bodies: Sequence[bytes]) -> tuple[str, ...]:
        """Return the patients that resources refer to, found in a thread if they are large."""
        if self.services.audit is None:
            return ()
        if sum(map(len, bodies)) <= _SMALL_BYTES:
            return patients_in(bodies)
        work = partial(patients_in, bodies)
        return await self.services.threads.run(self.owner, work)

    def note_commit(self) -> None:
        """Note that the write is committed: its record is in the version."""
        self._is_recorded = True

    def dispatch(self) -> Awaitable[None] | None:
        """Call the method that the request names, once a change is announced."""
        return self._announce() if self.is_announced else super().dispatch()

    def admit(self) -> AbstractContextManager[object]:
        """Return what the change holds while it lasts, or raise what refuses it unannounced.

        A flood of requests that are refused anyway would otherwise be a flood of synced writes.
        """
        return nullcontext()

    async def _announce(self) -> None:
        with self.admit():
            if self.services.audit is not None:
                await self._write_announcement(self.services.audit)
            changing = super().dispatch()
            if changing is not None:
                await changing

    async def _write_announcement(self, audit: AuditTrail) -> None:
        shared, what = self._shared(BEGUN), self._named_in_path()
        record = partial(encode_request, shared, self.request_id, what=what)
        await audit.write(self.caller.tenant.id, lambda at: record(at=at))
        await self.services.loop_turns.turn(self.owner)

    def finish(self, body: bytes = b"") -> None:
        """Send the answer once it is recorded."""
        self._record_then(partial(super().finish, body))

    def finish_with(self, body: ResponseBody) -> None:
        """Send an answer of any size once it is recorded."""
        self._record_then(partial(super().finish_with, body))

    def _record_then(self, send: Callable[[], None]) -> None:
        audit = self.services.audit
        if self._is_recorded or audit is None or not self.action:
            send()
            return
        self._is_recorded = True  # also if that fails: the refusal that follows is sent at once
        acting = self.acting
        if acting is None:
            self.count_refusal(audit)
            send()
        elif not self._is_to_record(audit):
            send()
        elif audit.waits:
            self.decide()
            work = self._write_then(audit, acting[0], send)
            self._recording = asyncio.create_task(self._await_or_fail(work, self.fail))
        else:
            try:
                audit.note(acting[0], self._record)
            except StoreUnavailable as problem:
                self.fail(problem)
                return
            send()

    async def _write_then(self, audit: AuditTrail, tenant: str, send: Callable[[], None]) -> None:
        await audit.write(tenant, self._record)
        send()

    def _is_to_record(self, audit: AuditTrail) -> bool:
        if self.audits_refusals_only and self.status < HTTPStatus.BAD_REQUEST:
            return False
        return audit.records_reads or self.is_announced

    def count_refusal(self, audit: AuditTrail) -> None:
        """Count a request without a valid token, or with one that is not good from there.

        Others without a caller are not accesses.
        """
        status, client = self.status, self.claimed
        if status == HTTPStatus.UNAUTHORIZED or client:
            action = "unauthenticated" if status == HTTPStatus.UNAUTHORIZED else self.action
            audit.count_refusal(action, status, address=self.address, client=client)

    def _record(self, at: int) -> bytes:
        """Return the record of the response."""
        query = self.request.query
        if self.request.form:
            query = "&".join(filter(None, (query, form_query(self.request.form))))
        return encode_request(
            self._shared(self.status),
            self.request_id,
            at=at,
            what=self._what or self._named_in_path(),
            patients=self._patients,
            query=query,
        )

    def _shared(self, status: int) -> bytes:
        """Return what the record has in common with those of other requests of the client."""
        acting = self.acting
        client, environment = acting[1] if acting else "", self.services.config.auth.environment
        return shared_members(self.action, status, client, environment, self.address)

    def _named_in_path(self) -> tuple[str, ...]:
        """Return what the path names, if it may be an id."""
        blanks = self._path_parameters
        if not blanks or not _ID.fullmatch(blanks[0]):
            return ()
        return (name_of(self.type_name or self.audited_type, blanks[0]),)

    def _resource_in_path(self) -> str:
        blanks = self._path_parameters
        return our_name(self.type_name or self.audited_type, blanks[0]) if blanks else ""

    audited_type: ClassVar[str] = "Endpoint"
    """What the path of a handler without a FHIR type names."""
