"""Which identifier of a resource is its key, and when two of them are the same (ADR 41)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Literal, get_args

Blanks = Literal["keep", "trim", "remove"]
Case = Literal["keep", "upper", "lower"]
BLANKS: tuple[str, ...] = get_args(Blanks)
CASES: tuple[str, ...] = get_args(Case)

Key = tuple[str, str]
"""A system, and a value in its normal form."""


def any_value(_value: str) -> bool:
    """Accept every value."""
    return True


@dataclass(frozen=True, slots=True, kw_only=True)
class ValueForm:
    """What the values of identifiers look like, and when two of them are the same.

    Values are compared in their normal form, from which the id of a resource follows. The
    resource keeps the value as it was sent. The steps are taken in the order of the attributes.

    Attributes:
        system: The system of the identifiers; empty for every system that has no form of its own.
        case: ``keep``, ``upper`` or ``lower``.
        remove: Characters that are left out, such as ``-.``.
        blanks: What becomes of white space: ``keep``, ``trim`` at both ends, or ``remove``.
        prefix: A beginning that is left out of the values that have it, such as ``urn:oid:``.
        pattern: A regular expression that matches every normal form as a whole; empty for any.
        check: A function of the normal form that returns whether it is right, such as one that
            verifies a check digit. It is called only for what the pattern matches.
        words: What values must be, for the refusal of one that is not: ``must be a UID``.
    """

    system: str = ""
    case: Case = "keep"
    remove: str = ""
    blanks: Blanks = "keep"
    prefix: str = ""
    pattern: str = ""
    check: Callable[[str], bool] = any_value
    words: str = "does not have the form of the identifiers in its system"


@dataclass(frozen=True, slots=True, kw_only=True)
class IdentifierRule:
    """Which identifier of a resource is its key: what its id follows from.

    Without any attribute it is the rule of most types: exactly one identifier, with system and
    value. An identifier can be the key if it has both, and if its use, type and system are among
    those that are named here, where some are. The best of several is the key: the one in the
    first of the elements, then the one whose use, whose type, whose system is named first. A
    resource is refused if no identifier can be the key, or if two are equally good.

    Attributes:
        elements: Elements of type Identifier, lists or not. Dots lead into nested elements.
        most: How many identifiers these elements may have together.
        uses: Uses that the key may have, the best first; empty for any. ``""`` stands for
            identifiers without a use.
        types: Codes of types that the key may have, each alone or as ``system|code``, the best
            first; empty for any. ``""`` stands for identifiers without the code of a type.
        systems: Systems that the key may have, the best first; empty for any.
        refused_systems: Systems that no identifier in these elements may have.
        forms: What values look like, at most one form for each system.
        key: A function of the resource that returns the system and the value of its key, or None
            if there is none: for types without identifiers. ``elements`` is empty then. It gets
            the resource before it is validated; exceptions count as None until it is valid.
        key_version: To be raised when ``key`` returns something else than before.
    """

    elements: tuple[str, ...] = ("identifier",)
    most: int = 1
    uses: tuple[str, ...] = ()
    types: tuple[str, ...] = ()
    systems: tuple[str, ...] = ()
    refused_systems: frozenset[str] = frozenset()
    forms: tuple[ValueForm, ...] = ()
    key: Callable[[Mapping[str, Any]], Key | None] | None = None
    key_version: int = 1


EXACTLY_ONE = IdentifierRule()
"""The rule of the types that declare none."""
