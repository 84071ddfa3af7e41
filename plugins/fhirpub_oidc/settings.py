"""The settings of the issuers: each entry of a list begins with the name of an issuer."""

# ruff: noqa: RUF009 - each setting has its default and its meaning side by side

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from fhirpub.plugin_api import setting

_FORMS = {
    "issuers": (2, 2, "NAME URL"),
    "audiences": (2, 2, "NAME AUDIENCE"),
    "tenants": (3, 3, "NAME VALUE TENANT"),
    "scopes": (2, 100, "NAME SCOPE SCOPE ..."),
    "roles": (3, 100, "NAME WORD SCOPE SCOPE ..."),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class IssuerSettings:
    """OpenID Connect issuers whose access tokens are accepted, each for its own tenants."""

    issuers: list[str] = setting(
        [],
        "Issuers as NAME URL, such as corp https://login.example.org. Its clients are named "
        "NAME:CLIENT.",
    )
    audiences: list[str] = setting(
        [], "What the tokens of each issuer must name in aud, as NAME AUDIENCE."
    )
    tenants: list[str] = setting(
        [],
        "Which tenant a value of tenant_claim stands for, as NAME VALUE TENANT. The value * is "
        "for every token of the issuer that no other entry is for.",
    )
    scopes: list[str] = setting(
        [], "The SMART scopes that tokens of an issuer have at most, as NAME SCOPE SCOPE ..."
    )
    roles: list[str] = setting(
        [],
        "What a word in scope_claim stands for, as NAME WORD SCOPE SCOPE ... SMART scopes need no "
        "entry.",
    )
    client_claims: list[str] = setting(
        ["client_id", "azp"],
        "Claims with the id of the client: the first that a token has counts.",
    )
    tenant_claim: str = setting(
        "", "Claim that says for which tenant a token is. Empty: the id of the client does."
    )
    scope_claim: str = setting(
        "scope", "Claim with scopes or roles: a text with blanks between them, or a list of texts."
    )

    def __post_init__(self) -> None:
        """Refuse entries that cannot be read, with all that is wrong."""
        found = [*self._problems()]
        if found:
            raise ValueError("; ".join(found))

    def of(self, name: str, key: str) -> list[list[str]]:
        """Return the words of the entries for an issuer in a setting, without its name."""
        entries: list[str] = getattr(self, key)
        split = [entry.split() for entry in entries]
        return [words[1:] for words in split if words[:1] == [name]]

    def _problems(self) -> Iterator[str]:
        names = {entry.split()[0] for entry in self.issuers if entry.split()}
        for key, (least, most, form) in _FORMS.items():
            for entry in getattr(self, key):
                words = entry.split()
                if not least <= len(words) <= most:
                    yield f"{key}: {entry!r} must be {form}"
                elif words[0] not in names:
                    yield f"{key}: {entry!r} begins with the name of no issuer in issuers"
        for name in sorted(names):
            if len(self.of(name, "audiences")) > 1:
                yield f"audiences: {name} has several"
        if not self.client_claims or not self.scope_claim:
            yield "client_claims and scope_claim must name claims"
