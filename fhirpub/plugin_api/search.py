"""Search parameters of a resource type, as declarations."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, get_args

DEFINITIONS = "http://hl7.org/fhir/SearchParameter"
SearchType = Literal[
    "token", "date", "reference", "quantity", "number", "string", "uri", "composite"
]
SEARCH_TYPES: tuple[str, ...] = get_args(SearchType)


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchParameter:
    """A search parameter (FHIR R4, search), and the elements whose values it compares.

    ``identifier``, ``status``, ``patient``, ``_id`` and ``_lastUpdated`` exist for every type and
    are not declared.

    Attributes:
        name: Its name in URLs, such as ``based-on``.
        type: The type of its values. A token compares elements of type CodeableConcept, Coding,
            Identifier, code or boolean; a date those of type date, dateTime, instant, Period or
            Timing; a reference those of type Reference; a quantity those of type Quantity, Age,
            Count, Distance or Duration; a number those of type decimal, integer, positiveInt or
            unsignedInt; a uri those of type uri, url, canonical, oid or uuid. A string compares
            how texts begin, without case and accents, of elements of type string, markdown or
            HumanName: of a name the family and given names, and its text from each word on. A
            composite compares two values that stand side by side.
        paths: The names of the elements in JSON, such as ``effectiveDateTime``. Dots lead into
            nested elements, through lists. Empty for a composite.
        components: The names of the two parameters of the type whose values a composite compares,
            a token and one that is no reference: those of elements in the same element belong
            together, such as ``component.code`` and ``component.valueQuantity``. Otherwise empty.
        definition: The canonical URL of the SearchParameter, for the CapabilityStatement.
    """

    name: str
    type: SearchType
    paths: tuple[str, ...] = ()
    components: tuple[str, ...] = ()
    definition: str = ""


def r4_parameter(definition: str, type_: SearchType, *paths: str) -> SearchParameter:
    """Declare a search parameter that FHIR R4 defines.

    Args:
        definition: The id of the SearchParameter in FHIR R4. The name of the parameter is the part
            behind the first hyphen: ``service-provider`` for ``Encounter-service-provider``,
            ``code`` for ``clinical-code``.
        type_: The type of its values.
        *paths: The elements that it compares, by their names in JSON.

    Returns:
        The search parameter.
    """
    return SearchParameter(
        name=definition.partition("-")[2],
        type=type_,
        paths=paths,
        definition=f"{DEFINITIONS}/{definition}",
    )


def r4_composite(definition: str, first: str, second: str) -> SearchParameter:
    """Declare a search parameter of the type composite that FHIR R4 defines.

    Args:
        definition: The id of the SearchParameter in FHIR R4, as `r4_parameter` takes it.
        first: The name of the parameter of the type whose codes it compares.
        second: The name of the one whose values it compares, in the same element.

    Returns:
        The search parameter.
    """
    return SearchParameter(
        name=definition.partition("-")[2],
        type="composite",
        components=(first, second),
        definition=f"{DEFINITIONS}/{definition}",
    )
