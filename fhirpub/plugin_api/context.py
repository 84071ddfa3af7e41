"""What hooks are given: the settings of their plugin, and what is known of the service."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, TypeVar, cast

from fhirpub.config.reader import setting as _setting

Group = TypeVar("Group")


def setting(default: Any, meaning: str, *, secret: bool = False) -> Any:
    """Return a field of a plugin's settings.

    The type of a field is that of its annotation: ``str``, ``int``, ``float``, ``bool``,
    ``list[str]`` or a ``Literal``.

    Args:
        default: The value if the operator sets none.
        meaning: What the setting does, for `fhirpub config`.
        secret: Whether the value is a secret, so that no command prints it.

    Returns:
        The field of a dataclass.
    """
    return _setting(default, meaning, secret=secret)


@dataclass(frozen=True, slots=True, kw_only=True)
class PluginContext:
    """What hooks are given.

    Attributes:
        base_url: The URL by which clients reach the service, without a slash at its end.
        environment: The environment of the service, ``sandbox`` or ``production``.
        groups: The settings of enabled plugins, by their class; `settings` reads them.
    """

    base_url: str
    environment: str
    groups: Mapping[type[Any], Any] = field(default_factory=dict)

    def settings(self, group: type[Group]) -> Group:
        """Return the settings of a plugin.

        Args:
            group: The class that the plugin returned from ``fhirpub_settings``.

        Returns:
            Its instance, with what the operator has set and the defaults of the rest.

        Raises:
            LookupError: No enabled plugin has returned this class.
        """
        if group not in self.groups:
            raise LookupError(f"no enabled plugin returns {group.__name__} from fhirpub_settings")
        return cast("Group", self.groups[group])
