"""GET /fhir/r4/{Type}?… and POST /fhir/r4/{Type}/_search."""

from __future__ import annotations

from collections.abc import Awaitable, Iterable
from urllib.parse import parse_qsl

from fhirpub.errors import InvalidSearch, NotPermitted
from fhirpub.interactions.execute import search
from fhirpub.interactions.versions import Listing
from fhirpub.problems import OperationProblem
from fhirpub.runtime.stages import yield_to_loop
from fhirpub.web.handlers.base import BaseHandler
from fhirpub.web.handlers.body import BodyHandler
from fhirpub.web.handlers.large_responses import with_memory_budget
from fhirpub.web.message.content_negotiation import check_form, preference

_INCLUDES = ("_include", "_revinclude")
_MAX_PARAMETERS = 200
_MAX_FORM_BYTES = 64 * 1024


async def _answer(handler: BaseHandler) -> None:
    if _includes(handler.request.parameters) and not handler.may("r"):
        # Parts of a resource need permission to read it.
        raise NotPermitted(f"system/{handler.type_name}.rs")

    def look() -> Awaitable[Listing]:
        return search(
            handler.request.parameters,
            resource_type=handler.services.context.searched[handler.type_name].type,
            tenant=handler.caller.tenant,
            context=handler.services.context,
            strict=preference(handler.request.headers.get("Prefer", ""), "handling") == "strict",
            may=handler.may_with,
        )

    found = await with_memory_budget(handler, look, lambda listing: listing.size)
    await yield_to_loop()
    await handler.respond_with_bundle(found)


def _includes(parameters: Iterable[tuple[str, str]]) -> bool:
    return any(name.partition(":")[0] in _INCLUDES for name, _ in parameters)


class SearchHandler(BaseHandler):
    """Search by URL."""

    requires_token = True
    scope = "s"
    action = "search"

    async def get(self) -> None:
        """Search."""
        await _answer(self)


class SearchFormHandler(BodyHandler):
    """Search by form; parameters of the URL count as well (R4 search)."""

    requires_token = True
    scope = "s"
    action = "search"

    def check_format(self) -> None:
        """Wait for the form: its ``_format`` comes before ``Accept``."""

    def check_content_type(self) -> None:
        """Refuse a body that is not a form; with all parameters in the URL it may be absent."""
        headers = self.request.headers
        if self.request.has_content() or "Content-Type" in headers:
            check_form(headers.get("Content-Type", ""))

    def max_bytes(self) -> int:
        """Return how large a form may be."""
        return _MAX_FORM_BYTES

    async def post(self) -> None:
        """Search."""
        self.request.add_form(_parse_form(self.take_body()))
        super().check_format()
        await self.search()

    async def search(self) -> None:
        """Answer, now that the parameters are known."""
        await _answer(self)


def _parse_form(body: bytes) -> list[tuple[str, str]]:
    """Return the parameters in a form; raises InvalidSearch."""
    try:
        return parse_qsl(
            body.decode(),
            keep_blank_values=True,
            errors="strict",
            max_num_fields=_MAX_PARAMETERS,
        )
    except UnicodeDecodeError:
        raise InvalidSearch.because(
            "the form must be UTF-8", details=OperationProblem.PARAMETER_INVALID
        ) from None
    except ValueError:
        rule = f"the form must have at most {_MAX_PARAMETERS} parameters"
        raise InvalidSearch.because(rule, details=OperationProblem.SEARCH_TOO_COSTLY) from None
