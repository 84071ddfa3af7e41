"""Where codes are looked up that the service does not hold, such as a terminology server."""

from __future__ import annotations

from abc import ABC, abstractmethod


class CodeSource(ABC):
    """Knows codes; `fhirpub.testing` has a test of each promise in ``CodeSourceContract``.

    The service asks about codes of systems that it does not hold itself, while it validates a
    resource: a code that a source knows needs no remark, one that it denies causes a warning, and
    one of which it says nothing is reported as unchecked. Nothing of that refuses a resource.
    """

    @abstractmethod
    def knows(self, system: str, code: str) -> bool | None:
        """Return at once, from memory, whether a code system has a code.

        It is called on the event loop, in threads and in other processes, for each such code of a
        resource. A source that has to ask a server does so later in a thread of its own, within a
        deadline, so that the next resource with the code is answered. Its threads must not keep
        the process from ending.

        Args:
            system: The URI of the code system, as it was sent.
            code: The code, as it was sent.

        Returns:
            Whether there is such a code; None if that is not known, or not yet.
        """
