"""The criteria and identifiers of a search as conditions of SQL."""

# ruff: noqa: S608 - statements are put together from names in this file, never from values

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Collection, Iterator, Sequence

import orjson

from fhirpub.storage.criteria import (
    ANYTHING,
    ID,
    IDENTIFIER,
    LAST_UPDATED,
    Condition,
    Criterion,
    TextMatch,
    TimeMatch,
    TokenMatch,
)
from fhirpub.storage.sqlite.parameters import json_list

Parameters = dict[str, str | int]

_PAIRS = "SELECT json_extract(value, '$[0]'), json_extract(value, '$[1]') FROM json_each(:{name})"
_EACH = (
    "EXISTS (SELECT 1 FROM json_each(v.search) AS e WHERE json_extract(e.value, '$[0]') = :{name}"
)
"""What begins a condition on one of the values under a name, and needs a bracket at its end."""
_FIRST, _SECOND = "json_extract(e.value, '$[1]')", "json_extract(e.value, '$[2]')"
_MAX_COMPARED = 8
"""Up to so many alternatives are sought in the text of all values, one after another."""
_IDENTIFIED = "v.value <> ''"
"""What holds of every row of the indexes by identifier: SQLite uses them where it is asked for."""
COLUMNS = {ID: ("''", "v.id"), IDENTIFIER: ("v.system", "v.value"), LAST_UPDATED: ("", "")}
"""The columns of a version that some parameters are compared with: of systems and of values."""


def match_condition(condition: Condition, name: str, parameters: Parameters) -> str:
    """Return the condition for what fulfils one of a search; sets its parameters."""
    if isinstance(condition, Criterion):
        return _match_criterion(condition, name, parameters)
    groups = [
        " AND ".join(
            _match_criterion(one, f"{name}g{place}_{number}", parameters)
            for number, one in enumerate(group)
        )
        for place, group in enumerate(condition.groups)
    ]
    return f"({' OR '.join(f'({group})' for group in groups) or '0'})"


def _match_criterion(criterion: Criterion, name: str, parameters: Parameters) -> str:
    """Return the condition for what meets a criterion; sets its parameters."""
    tokens = [item for item in criterion.any_of if isinstance(item, TokenMatch)]
    times = [item for item in criterion.any_of if isinstance(item, TimeMatch)]
    texts = [item for item in criterion.any_of if isinstance(item, TextMatch)]
    if ANYTHING in tokens and criterion.name in COLUMNS:
        either = ["1"]
    elif criterion.name == LAST_UPDATED:
        either = [_match_bounds(times, ("v.updated", "v.updated + 1"), name, parameters)]
    elif criterion.name in COLUMNS:
        columns = COLUMNS[criterion.name]
        either = [_match_mixed(tokens, name, parameters, columns)]
        either += [
            _match_text(text, f"{name}x{number}", parameters, columns)
            for number, text in enumerate(texts)
        ]
    else:
        parameters[name] = criterion.name
        either = list(_among_values(criterion.name, tokens, times, name, parameters))
        either += _among_texts(criterion.name, texts, name, parameters)
    return f"{'NOT ' if criterion.negated else ''}({' OR '.join(either) or '0'})"


def _among_values(
    field: str,
    tokens: Sequence[TokenMatch],
    times: Sequence[TimeMatch],
    name: str,
    parameters: Parameters,
) -> Iterator[str]:
    """Return what of the values of a version must be true, one way or another."""
    yield from _match_owned(field, tokens, name, parameters)
    tokens = [token for token in tokens if token.of is None]
    beginnings = [
        _prefix_of(field, token)
        for token in tokens
        if token.value is not None or token == ANYTHING
    ]
    is_long = len(beginnings) > _MAX_COMPARED and ANYTHING not in tokens
    if len(beginnings) == 1:
        parameters[f"{name}b"] = beginnings[0]
        yield f"instr(v.search, :{name}b) > 0"
    elif beginnings and not is_long:
        parameters[f"{name}b"] = json.dumps(beginnings, ensure_ascii=False)
        yield f"EXISTS (SELECT 1 FROM json_each(:{name}b) WHERE instr(v.search, value) > 0)"
    each = _EACH.format(name=name)
    systems = [one.system for one in tokens if one.value is None and one.system is not None]
    if is_long:  # each value is looked up in the list, however long that is
        yield f"{each} AND {_match_mixed(tokens, name, parameters, (_SECOND, _FIRST))})"
    elif systems:
        yield f"{each} AND {match_one_of(_SECOND, systems, f'{name}s', parameters)})"
    if times:
        yield f"{each} AND {_match_bounds(times, (_FIRST, _SECOND), name, parameters)})"


def _among_texts(
    field: str, texts: Sequence[TextMatch], name: str, parameters: Parameters
) -> Iterator[str]:
    """Return the conditions for texts that are as one of these."""
    for number, text in enumerate(texts):
        begins = f"{name}x{number}"
        if text.anywhere:
            matching = _match_text(text, begins, parameters, (_SECOND, _FIRST))
            yield f"{_EACH.format(name=name)} AND {matching})"
            continue
        stored = orjson.dumps([field, text.beginning]).decode()
        parameters[f"{begins}b"] = stored.removesuffix('"]')
        condition = f"instr(v.search, :{begins}b) > 0"
        if text.kind is not None:
            matching = _match_text(text, begins, parameters, (_SECOND, _FIRST))
            condition = f"({condition} AND {_EACH.format(name=name)} AND {matching}))"
        yield condition


def _match_text(
    text: TextMatch, name: str, parameters: Parameters, columns: tuple[str, str]
) -> str:
    """Return the condition for a text in columns: of kinds, and of texts."""
    kind, value = columns
    parameters[f"{name}from"] = text.beginning
    all_of = [f"{value} >= :{name}from"]
    if text.anywhere:
        all_of = [f"typeof({value}) = 'text' AND instr({value}, :{name}from) > 0"]
    elif text.end is not None:
        parameters[f"{name}until"] = text.end
        all_of.append(f"{value} < :{name}until")
    if text.kind is not None:
        parameters[f"{name}kind"] = text.kind
        all_of.append(f"{kind} = :{name}kind")
    return f"({' AND '.join(all_of)})"


def _match_owned(
    field: str, tokens: Sequence[TokenMatch], name: str, parameters: Parameters
) -> Iterator[str]:
    """Return the conditions for what only the resource of an id may match by."""
    owners: defaultdict[str, list[str]] = defaultdict(list)
    for token in tokens:
        if token.of is not None:
            owners[_prefix_of(field, token)].append(token.of)
    for number, (beginning, ids) in enumerate(owners.items()):
        parameters[f"{name}o{number}"] = beginning
        owned = match_one_of("v.id", ids, f"{name}w{number}", parameters)
        yield f"({owned} AND instr(v.search, :{name}o{number}) > 0)"


def _prefix_of(name: str, token: TokenMatch) -> str:
    """Return how values that match begin, as they are stored."""
    known = [name]
    if token.value is not None:
        known.append(token.value)
        if token.system is not None:
            known.append(token.system)
    text = orjson.dumps(known).decode()
    return text if len(known) == 3 else f"{text[:-1]},"


def _match_bounds(
    times: Sequence[TimeMatch], ends: tuple[str, str], name: str, parameters: Parameters
) -> str:
    start, end = ends
    either = []
    for number, time_match in enumerate(times):
        bounds = (
            (start, ">=", time_match.from_),
            (start, "<", time_match.before),
            (end, ">", time_match.after),
            (end, "<=", time_match.until),
        )
        all_of = []
        for which, (value, compared, bound) in enumerate(bounds):
            if bound is not None:
                parameters[f"{name}t{number}_{which}"] = bound
                all_of.append(f"{value} {compared} :{name}t{number}_{which}")
        either.append(f"({' AND '.join(all_of) or f'{start} IS NOT NULL'})")
    return f"({' OR '.join(either) or '0'})"


def match_identified(
    group: Sequence[TokenMatch], number: str, parameters: Parameters
) -> dict[str, str]:
    """Return what must hold for one of the alternatives to match, by the index that serves it."""
    systems = [token_match.system for token_match in group if token_match.system is not None]
    values = [token_match.value for token_match in group if token_match.value is not None]
    needed: dict[str, str] = {}
    if ANYTHING in group:
        return needed
    if len(systems) == len(group):
        name = f"systems{number}"
        condition = match_one_of("v.system", systems, name, parameters)
        needed["version_by_system"] = f"{condition} AND {_IDENTIFIED}"
    if len(values) == len(group):
        name = f"values{number}"
        condition = match_one_of("v.value", values, name, parameters)
        needed["version_by_value"] = f"{condition} AND {_IDENTIFIED}"
    if systems and values and len(group) > 1:
        needed["version_by_time"] = _match_mixed(group, number, parameters, COLUMNS[IDENTIFIER])
    return needed


def _match_mixed(
    group: Sequence[TokenMatch], name: str, parameters: Parameters, columns: tuple[str, str]
) -> str:
    """Return the condition for alternatives of several forms, or of several pairs."""
    alone = [
        token_match.system
        for token_match in group
        if token_match.system is not None and token_match.value is None
    ]
    values = [
        token_match.value
        for token_match in group
        if token_match.system is None and token_match.value is not None
    ]
    pairs = [
        [token_match.system, token_match.value]
        for token_match in group
        if token_match.system is not None and token_match.value is not None
        if "\0" not in token_match.system + token_match.value
    ]
    system, value = columns
    either = []
    if alone:
        either.append(match_one_of(system, alone, f"lone_systems{name}", parameters))
    if values:
        either.append(match_one_of(value, values, f"lone_values{name}", parameters))
    if pairs:
        parameters[f"pairs{name}"] = json.dumps(pairs, ensure_ascii=False)
        either.append(f"({system}, {value}) IN ({_PAIRS.format(name=f'pairs{name}')})")
    return f"({' OR '.join(either) or '0'})"


def match_one_of(column: str, texts: Collection[str], name: str, parameters: Parameters) -> str:
    """Return a condition; a single text is compared as such, so that the index keeps its order."""
    if len(texts) == 1:
        parameters[name] = next(iter(texts))
        return f"{column} = :{name}"
    parameters[name] = json_list(texts)
    return f"{column} IN (SELECT value FROM json_each(:{name}))"
