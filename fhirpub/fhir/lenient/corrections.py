"""What was corrected in a body, and where, as issues of bounded size."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from fhirpub.errors import MAX_PLACES, Issue
from fhirpub.problems import ContentProblem


@dataclass(slots=True)
class Corrections:
    """Places with one kind of correction: the first hundred, and how many there are."""

    problem: ContentProblem
    rule: str
    places: list[str] = field(default_factory=list)
    count: int = 0

    def add(self, place: str) -> None:
        """Note a place."""
        self.count += 1
        if len(self.places) < MAX_PLACES:
            self.places.append(place)

    def add_instead(self, count: int, place: str) -> None:
        """Note a place instead of all but the first ``count``."""
        del self.places[count:]
        self.count = count
        self.add(place)

    def issues(self) -> Iterator[Issue]:
        """Yield the warning, if there is a place."""
        if not self.count:
            return
        more = self.count - len(self.places)
        rule = f"{self.rule} (and in {more} more places)" if more else self.rule
        yield Issue.warning(self.problem, rule, code="invalid").at(*self.places)
