"""GET of one resource, of one version, and of a part."""

from __future__ import annotations

from functools import partial

from fhirpub.errors import NoSuchResource, NotPermitted
from fhirpub.fhir.times import from_http
from fhirpub.interactions.read import read, read_part, vread
from fhirpub.interactions.summary import check_subset, is_subset
from fhirpub.interactions.versions import Shown
from fhirpub.storage.contract import Version
from fhirpub.tenant import is_member_id
from fhirpub.web.handlers.base import BaseHandler
from fhirpub.web.handlers.large_responses import read_version_within_budget
from fhirpub.web.message.representation import serialize_subset


class ReadHandler(BaseHandler):
    """Read the latest version."""

    requires_token = True
    conditions = frozenset({"If-Match", "If-None-Match", "If-Modified-Since"})
    scope = "r"
    action = "read"

    async def get(self, resource_id: str) -> None:
        """Read."""
        tenant, context = self.caller.tenant, self.services.context
        found = await read_version_within_budget(
            self, lambda: read(self.type_name, resource_id, tenant=tenant, context=context)
        )
        await self.respond_with_found(found)

    async def respond_with_version_of(self, resource_id: str, version: str) -> None:
        """Read and write one version."""
        tenant, context = self.caller.tenant, self.services.context
        found = await read_version_within_budget(
            self,
            lambda: vread(self.type_name, resource_id, version, tenant=tenant, context=context),
        )
        await self.respond_with_found(found)

    async def respond_with_found(self, found: Version) -> None:
        """Write a version, or 304 if the client has it (D-99), or 412 if it wants another.

        What would be refused is refused before: a condition changes no error (RFC 9110, 13.2.1).
        """
        await self.note_version(found)
        summary, elements = self.request.parameter("_summary"), self.request.parameter("_elements")
        check_subset(summary, elements)
        self.request.preconditions().check(found)
        self.set_version_headers(found)
        if await self.is_known(found):
            self.respond_not_modified()
            return
        if is_subset(summary, elements):
            work = partial(
                serialize_subset,
                version=Shown.of(found),
                summary=summary,
                elements=elements,
                form=self.format,
            )
            self.respond_serialized(await self.compute_answer(work, [found.body]))
            return
        await self.respond_with_version(found)

    async def is_known(self, found: Version) -> bool:
        """Return whether the client has a version, by If-None-Match or If-Modified-Since."""
        if self.request.headers.get("If-None-Match"):
            return self.client_has(str(found.version))
        since = from_http(self.request.headers.get("If-Modified-Since", ""))
        if since is None:
            return False
        second = since // 1000
        if since % 1000 or found.updated // 1000 != second:
            return found.updated <= since
        # An HTTP-date knows seconds alone: it may be that of the version before.
        before = await self.version_before(found)
        return before is None or before.updated // 1000 < second

    async def version_before(self, found: Version) -> Version | None:
        """Return the version before one, if there is one."""
        return await self.services.context.resources.version(
            self.caller.tenant.id, found.id, found.version - 1
        )


class VersionHandler(ReadHandler):
    """Read one version (vread)."""

    action = "vread"

    async def get(self, resource_id: str, version: str) -> None:  # type: ignore[override]
        """Read one version."""
        await self.respond_with_version_of(resource_id, version)


class PartHandler(ReadHandler):
    """Read what came with a resource, such as its patient (ADR 15)."""

    belongs_to_others = True

    async def get(self, resource_id: str) -> None:
        """Read a part."""
        tenant, context = self.caller.tenant, self.services.context
        found = await read_version_within_budget(
            self, lambda: read_part(self.type_name, resource_id, tenant=tenant, context=context)
        )
        if not self.may_with("r", (self.type_name, found.type)):
            raise NotPermitted(self.needed_scope())
        await self.respond_with_found(found)


class PartVersionHandler(PartHandler):
    """Read the version of a part: there is one, which its ``meta`` and its entity tag name."""

    action = "vread"

    async def get(self, resource_id: str, version: str) -> None:  # type: ignore[override]
        """Read the part."""
        if version != "1":
            raise NoSuchResource(self.type_name, f"{resource_id}/_history/{version}")
        await super().get(resource_id)


class MemberOrPartHandler(PartHandler):
    """Read what came with a resource, with versions of its own or without (ADR 15, 24)."""

    async def get(self, resource_id: str) -> None:
        """Read a member or a part."""
        if is_member_id(resource_id):
            self.check_scope_of_type()
            await ReadHandler.get(self, resource_id)
        else:
            await super().get(resource_id)

    def check_scope_of_type(self) -> None:
        """Raise NotPermitted without the right to the type itself, which members require."""
        if not self.may_with("r", (self.type_name,)):
            raise NotPermitted(self.needed_scope())


class MemberOrPartVersionHandler(MemberOrPartHandler):
    """Read one version of a member, or the only one of a part."""

    action = "vread"

    async def get(self, resource_id: str, version: str) -> None:  # type: ignore[override]
        """Read one version."""
        if is_member_id(resource_id):
            self.check_scope_of_type()
            await self.respond_with_version_of(resource_id, version)
        elif version != "1":
            raise NoSuchResource(self.type_name, f"{resource_id}/_history/{version}")
        else:
            await super().get(resource_id)


class OwnHandler(BaseHandler):
    """Read what the service itself publishes: its statement, its operations."""

    requires_token = True

    def get(self, resource_id: str) -> None:
        """Read one of our own resources."""
        body = self.services.own_resources.get((self.type_name, resource_id))
        if body is None:
            raise NoSuchResource(self.type_name, resource_id)
        self.respond(body)


class ProblemsHandler(OwnHandler):
    """Read the codes of problems, publicly: no token is needed."""

    requires_token = False
