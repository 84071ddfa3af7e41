"""The settings of plugins."""

# ruff: noqa: RUF009 - each setting has its default and its meaning side by side

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from fhirpub.config.reader import setting as _setting


@dataclass(frozen=True, slots=True, kw_only=True)
class PluginsConfig:
    """The resource types that are served."""

    enabled: list[str] = _setting(
        ["diagnosticreport"], "Names of enabled plugins. `fhirpub plugins` lists all of them."
    )
    environment: Literal["production", "development"] = _setting(
        "production",
        "development: if code of a plugin fails, the log has the traceback and what the exception "
        "says, which may be data of the request. It prevents the start where [auth] environment "
        "is production. production: the log has the exception's type, file and line.",
    )
