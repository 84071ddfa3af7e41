"""From the value of a search parameter to the tokens, times, texts and references that match."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence

from fhirpub.errors import SearchTooCostly
from fhirpub.fhir.search_value import pair_of, plain, token_of, typed_of, values_of
from fhirpub.interactions.identity.identification import Identification
from fhirpub.interactions.indexing.resolution import ResolvedParameter
from fhirpub.interactions.indexing.texts import FAMILY, GIVEN, TEXT, exact_text, shorten
from fhirpub.interactions.indexing.values import encode_typed_code, split_reference
from fhirpub.interactions.parameters import SearchIndexer
from fhirpub.interactions.search.sought import READERS, Asking, Pair, Sought
from fhirpub.problems import OperationProblem
from fhirpub.runtime.clock import Clock
from fhirpub.storage.criteria import Match, TextMatch, TokenMatch
from fhirpub.tenant import Tenant

MAX_CONDITIONS = 50
_MAX_STEPS = 100
"""So many steps of the path of a URL are looked at for what is above it."""


def too_many_conditions(name: str) -> SearchTooCostly:
    """Return the refusal of a search in which a parameter leads beyond `MAX_CONDITIONS`."""
    return SearchTooCostly.because(
        f"a search has at most {MAX_CONDITIONS} conditions, and each date, number, text, URI and "
        "pair, and each system of a list is one: send fewer",
        expression=name,
        details=OperationProblem.SEARCH_TOO_COSTLY,
    )


class ValueParser:
    """Reads the values of parameters; ``wrong`` takes the name and the rule of one that is not.

    Raises SearchTooCostly beyond ``max_values`` values of all parameters together (D-289).
    """

    def __init__(
        self,
        searched: SearchIndexer,
        tenant: Tenant,
        *,
        clock: Clock,
        wrong: Callable[[str, str], None],
        max_values: int,
    ) -> None:
        self._searched = searched
        self._tenant = tenant
        self._clock = clock
        self._wrong = wrong
        self._max_values = max_values
        self._counts: Counter[str] = Counter()

    @property
    def longest(self) -> str:
        """The parameter with the most values; empty if none has several."""
        (name, count), *_ = self._counts.most_common(1) or [("", 0)]
        return name if count > 1 else ""

    def ids(self, name: str, value: str) -> list[str] | None:
        """Read ids as they are; None if one of them is wrong."""
        texts = self._split(name, value)
        if texts is None:
            self._wrong(name, "must be ids, separated by commas")
        return texts

    def tokens(self, name: str, value: str) -> list[TokenMatch]:
        """Read tokens: codes and identifiers."""
        tokens = [token_of(text) for text in self._split(name, value) or [""]]
        if None in tokens:
            self._wrong(name, "must be value, system|value, system| or |value")
        return [TokenMatch(token.system, token.value) for token in tokens if token is not None]

    def typed(
        self, name: str, value: str, identification: Identification | None = None
    ) -> list[TokenMatch]:
        """Read identifiers with their types, as ``:of-type`` takes them.

        With the rule of a type for its identifiers, their values stand there in each form.
        """
        read = [typed_of(text) for text in self._split(name, value) or [""]]
        if None in read:
            self._wrong(name, "must be system|code|value with :of-type")
        known = [item for item in read if item is not None]
        return [
            TokenMatch(system, encode_typed_code(code, spelling))
            for system, code, number in known
            for spelling in (identification.spellings_of(number) if identification else [number])
        ]

    def sought(self, known: ResolvedParameter, value: str) -> list[Sought] | None:
        """Read the alternatives of a parameter that is no reference; None if one is wrong."""
        name, type_ = known.parameter.name, known.parameter.type
        if type_ == "date":
            texts: list[str] | None = value.split(",")
            self._count(name, len(texts or ()))
        else:
            texts = self._split(name, value)
        if type_ != "token":
            self._check_few(name, texts)
        return self._read_all(name, type_, texts or [""], known.kind)

    def pairs(self, known: ResolvedParameter, value: str) -> list[Pair] | None:
        """Read the alternatives of a composite; None if one of them is wrong."""
        name = known.parameter.name
        type_ = known.pairings[0].type
        found = []
        texts = self._split(name, value)
        self._check_few(name, texts)
        for text in texts or [""]:
            both = pair_of(text)
            code = token_of(both[0]) if both else None
            if both is None or code is None or code.value is None:
                self._wrong(name, "must be two values such as system|code$value, first a code")
                return None
            other = self._read_all(name, type_, [both[1]], None)
            if other is None:
                return None
            found.append(Pair(TokenMatch(code.system, code.value), other[0]))
        return found

    def _read_all(
        self, name: str, type_: str, texts: Sequence[str], kind: str | None
    ) -> list[Sought] | None:
        rule, read = READERS[type_]
        asked = Asking(self._searched.zone, self._clock(), kind)
        found = [read(text, asked) for text in texts]
        if None in found:
            self._wrong(name, rule)
            return None
        return [one for one in found if one is not None]

    def exact_texts(self, known: ResolvedParameter, value: str) -> list[TokenMatch]:
        """Read texts as they are written, each of any kind."""
        kinds = (FAMILY, GIVEN, TEXT, "") if known.kind is None else (known.kind,)
        texts = [plain(text) for text in values_of(value) or ()]
        return [TokenMatch(exact_text(text, kind), "") for text in texts for kind in kinds]

    def uris(self, name: str, value: str, modifier: str) -> list[Match]:
        """Read URLs with what is ``below`` each of them, or ``above``, in their paths."""
        found: list[Match] = []
        texts = self._split(name, value)
        self._check_few(name, texts)
        for text in map(plain, texts or [""]):
            if "://" not in text:
                self._wrong(name, f"must be a URL, with a scheme and a host, for :{modifier}")
                continue
            found.append(TokenMatch(None, shorten(text)))
            if modifier == "below":
                found.append(TextMatch(f"{shorten(text).removesuffix('/')}/"))
            else:
                above = _urls_above(text)
                self._count(name, len(above))
                found += [TokenMatch(None, one) for one in above]
        return found

    def references(self, name: str, value: str, target: str | None) -> list[TokenMatch]:
        """Read references; without a type they are to a ``target``."""
        texts = self._split(name, value)
        if not texts:
            self._wrong(name, "must be an id, Type/id or a URL")
            return []
        found = []
        for text in texts:
            literal = plain(text)
            type_name, resource_id = split_reference(literal, self._searched)
            if not resource_id:
                self._wrong(name, "must be an id, Type/id or a URL")
            if not type_name:
                wanted = "" if ":" in literal else target
            elif target in (None, type_name):
                wanted = type_name
            else:
                continue
            found.append(TokenMatch(wanted, resource_id))
            found += self._searched.owners(wanted, resource_id, self._tenant)
        return found

    def _split(self, name: str, value: str) -> list[str] | None:
        """Return the values of a list, as `values_of` does; raises SearchTooCostly."""
        least = value.count(",") - value.count("\\,")
        self._check(name, least)  # before a long text is split
        texts = values_of(value)
        self._count(name, len(texts or ()))
        return texts

    def _count(self, name: str, more: int) -> None:
        self._counts[name] += more
        self._check(name, 0)

    def _check_few(self, name: str, texts: Sequence[str] | None) -> None:
        """Refuse more values than a search has conditions before they are read."""
        if len(texts or ()) > MAX_CONDITIONS:
            raise too_many_conditions(name)

    def _check(self, name: str, more: int) -> None:
        if self._counts.total() + more > self._max_values:
            rule = f"a search has at most {self._max_values} values over all of its parameters"
            raise SearchTooCostly.because(
                f"{rule}: send fewer",
                expression=name,
                details=OperationProblem.SEARCH_TOO_COSTLY,
            )


def _urls_above(url: str) -> list[str]:
    """Return the URLs above one in its path, at most as many as a search has values."""
    scheme, _, rest = url.partition("://")
    host, *path = rest.rstrip("/").split("/", maxsplit=_MAX_STEPS)
    return [f"{scheme}://{'/'.join((host, *path[:number]))}" for number in range(len(path))]
