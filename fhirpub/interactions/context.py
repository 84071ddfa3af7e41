"""What every interaction works with."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import tzinfo
from functools import lru_cache
from typing import TypeVar

from fhirpub.config.settings import Config
from fhirpub.fhir.schema import Schemas
from fhirpub.fhir.terminology import Terminology
from fhirpub.fhir.times import instant
from fhirpub.interactions.indexing.persons import PATIENT
from fhirpub.interactions.parameters import SearchIndexer
from fhirpub.plugin_api import ResourceType, RuleContext
from fhirpub.plugin_api.member_types import MemberType
from fhirpub.plugin_api.operations import PluginOperation
from fhirpub.runtime.clock import DAY_MS, Clock
from fhirpub.runtime.stages import Stages, StageScheduler, run_to_completion
from fhirpub.storage.contract import Resources

T = TypeVar("T")
May = Callable[[str, Collection[str]], bool]
"""Whether the caller may read (``r``) or search (``s``) what is of one of these types."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Context:
    """The store, the enabled types and their validators; one for the life of the service."""

    config: Config
    resources: Resources
    types: Mapping[str, ResourceType]
    members: Mapping[str, MemberType]
    """The types whose resources come with others, registered alone or not."""
    revisable: Mapping[str, ResourceType]
    """The types whose resources bring others, as a revision of them is validated (ADR 25)."""
    searched: Mapping[str, SearchIndexer]
    """How each of the types, and of these, is searched."""
    schemas: Schemas
    terminology: Terminology
    clock: Clock
    default_zone: tzinfo
    accepts_fast: bool = True
    """Whether what is right is accepted by the short way (ADR 31); tests compare it with the long
    one."""
    operations: Mapping[str, Sequence[PluginOperation]] = field(default_factory=dict)
    """The operations of plugins, by the type that they are of."""
    added: Callable[[], None]
    """To be called when a version was added: its events may need publishing."""
    stages: StageScheduler = field(default_factory=StageScheduler)
    """Where what is computed on the event loop takes turns with what other tenants compute."""

    @property
    def fhir_url(self) -> str:
        """The FHIR base, without a slash at its end."""
        return fhir_url(self.config)

    @property
    def part_types(self) -> Sequence[str]:
        """The types of the parts that have no versions (ADR 15), in their order."""
        every = (part for resource_type in self.types.values() for part in resource_type.parts)
        return sorted({part.type for part in every if not part.repeats})

    @property
    def has_patients(self) -> bool:
        """Whether patients are parts of resources, and no resources of their own (ADR 26)."""
        has_own = PATIENT in self.types or PATIENT in self.members
        return PATIENT in self.searched and not has_own

    def rules_for(self, tenant_id: str) -> RuleContext:
        """Return what the rules of a plugin may look at."""
        return RuleContext(
            tenant_id=tenant_id,
            today=_date(self.clock() // DAY_MS),
            terminology=self.terminology,
            allow_gender_unknown=self.config.fhir.allow_gender_unknown,
            organization_namespaces=tuple(self.config.fhir.organization_namespaces),
        )


def fhir_url(config: Config) -> str:
    """Return the FHIR base, without a slash at its end."""
    return f"{config.base_url}/fhir/r4"


def run_at(
    context: Context, body: bytes, *, now: int | None, work: Callable[[Context, bytes], Stages[T]]
) -> T:
    """Run a pure computation on a body to its end, at a time in milliseconds, or now."""
    if now is not None:
        context = replace(context, clock=lambda: now)
    return run_to_completion(work(context, body))


@lru_cache(maxsize=2)
def _date(days: int) -> str:
    return instant(days * DAY_MS)[:10]
