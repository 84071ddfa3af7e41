"""The names of search parameters that are not known or have no value, and which were meant."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from itertools import count

from fhirpub.errors import Issue
from fhirpub.fhir.explanation.unknown_names import MAX_SUGGESTIONS
from fhirpub.interactions.parameters import SearchIndexer
from fhirpub.problems import OperationProblem
from fhirpub.storage.criteria import ID, IDENTIFIER, LAST_UPDATED
from fhirpub.suggestion import nearest

PARAMETER_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_.:-]{0,63}")
"""What can be the name of a search parameter, with its modifier, and can be shown."""
_BASE_NAME = re.compile("[^:.]*")
_SORT, _INCLUDE, _REVINCLUDE = "_sort", "_include", "_revinclude"
_NAMING = (_SORT, _INCLUDE, _REVINCLUDE)
"""What is known, and unknown only if it names something that cannot be included or sorted by."""
_SORTABLE = (ID, IDENTIFIER, LAST_UPDATED)
Hint = Callable[[str], str]
"""What to do about the name of a parameter that is not known."""
_OF_ALL_TYPES = (*_SORTABLE, *_NAMING, "_count", "_elements", "_format", "_summary", "_total")


def unused_empty(names: Iterable[str]) -> Iterator[Issue]:
    """Yield a warning for each name without a value: an empty filter must not go unnoticed."""
    rule = "the search parameter {} has no value and was not used"
    for name in dict.fromkeys(map(_shown, names)):
        yield Issue.warning(OperationProblem.PARAMETER_EMPTY, rule.format(name))


def unused_unknown(names: Iterable[str], hint_of: Hint) -> Iterator[Issue]:
    """Yield a warning for each name that is not known and was left out."""
    for name, hint in _hints(dict.fromkeys(map(_shown, names)), hint_of):
        what = f"the search parameter {name}"
        what = f"what {what} names" if name in _NAMING else what
        said = f"{what} is not supported and was not used{hint}"
        yield Issue.warning(OperationProblem.PARAMETER_UNKNOWN, said)


def refuse_unknown(names: Iterable[str], hint_of: Hint) -> Iterator[Issue]:
    """Yield an error for each name that is not known, where each must be."""
    for name, hint in _hints(names, hint_of):
        rule = "names what is not supported" if name in _NAMING else "cannot be searched by"
        problem = OperationProblem.PARAMETER_UNKNOWN
        yield Issue.error(problem, f"{rule}{hint}", expression_of(name))


def expression_of(name: str) -> str:
    """Return the name of a parameter if it can be shown, without its modifier."""
    return name.partition(":")[0] if PARAMETER_NAME.fullmatch(name) else ""


def _shown(name: str) -> str:
    return name if PARAMETER_NAME.fullmatch(name) else "(unknown)"


def _hints(names: Iterable[str], hint_of: Hint) -> Iterator[tuple[str, str]]:
    """Yield each name with what to do about it; only the first get a suggestion, which costs."""
    for name, number in zip(names, count(), strict=False):
        hint = hint_of(name) if number < MAX_SUGGESTIONS else ""
        yield name, hint and f"; {hint}"


def hint_of(searched: SearchIndexer, name: str) -> str:
    """Return what to do about the name of a parameter that a type does not have."""
    kind, known = searched.type.name, searched.parameters
    if name == _SORT:
        sortable = [one for one in known if known[one].is_sortable]
        return f"what can be sorted by: {', '.join(dict.fromkeys([*_SORTABLE, *sortable]))}"
    if name == _INCLUDE:
        includable = (f"{kind}:{one}" for one in searched.includable())
        return f"what can be included: {', '.join(includable)}"
    if name == _REVINCLUDE:
        return "what refers is named by its type, a colon, and one of its reference parameters"
    base = _BASE_NAME.match(name)[0]  # type: ignore[index] # it matches everything
    if base in known and "." in name and searched.chains_of(known[base], ""):
        return f"of what {base} refers to, the identifier can be searched: {base}.{IDENTIFIER}"
    if base in known or base in _OF_ALL_TYPES:
        return f"{base} is known, but not with what follows it"
    near = nearest(base, [*known, *_OF_ALL_TYPES])
    return f"did you mean {near}?" if near else f"the CapabilityStatement lists those of {kind}"
