"""The folder that keeps between runs what the tests download."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

from fhirpub.config.loader import variable


def cache_folder() -> Path:
    """Return the folder where downloads are kept between runs."""
    base = variable("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(variable("FHIRPUB_CACHE") or Path(base) / "fhirpub")


@contextmanager
def filling(home: Path) -> Iterator[Path]:
    """Yield a new folder to fill, which becomes ``home`` at the end.

    It appears completely or not at all, also when several processes fill it at once.
    """
    home.parent.mkdir(parents=True, exist_ok=True)
    with TemporaryDirectory(dir=home.parent, prefix=".fetching-") as name:
        filled = Path(name, "filled")
        filled.mkdir()
        yield filled
        try:
            filled.rename(home)
        except OSError:
            if not home.exists():  # else another process was faster
                raise
