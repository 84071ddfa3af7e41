"""The findings of `fhirpub check` about signing keys, salts and the keys that encrypt them."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator, Sequence

from fhirpub.app.secret_checks import RESEAL
from fhirpub.app.stores import key_source, open_store
from fhirpub.cli.advice.finding import Finding
from fhirpub.config.settings import Config
from fhirpub.encryption.cipher import KEYS_VARIABLE, NO_KEY, State, key_name_in
from fhirpub.encryption.keys import KeySource
from fhirpub.storage.reencryption import FIND_KEY, in_words, key_names, state_of
from fhirpub.storage.secret_contract import StoredSecret

_SUBJECT = "secrets"
_OF_OTHERS = 0o007


async def find_secrets(config: Config, *, created: bool) -> AsyncIterator[Finding]:
    """Check that signing keys and salts are encrypted, and that they can be decrypted.

    ``created`` is whether the file of the key was created by this command, as by a start.
    """
    source = key_source(config)
    async with open_store(config) as store:
        secrets = [(one, state_of(store, one)) for one in await store.stored_secrets()]
        names = store.cipher.names
    missing = {key_name_in(one.value) for one, state in secrets if state == "missing"}
    problems = [
        *_problems(secrets, has_key=bool(names)),
        *_found_beside(sorted(missing), source),
        *_problems_of_key(config, source),
    ]
    for problem in problems:
        yield problem
    if created:
        text = f"created {source.file}, the key of the secrets in the store: keep a copy"
        yield Finding(_SUBJECT, "ok", text)
    elif names and not problems:
        text = f"signing keys and salts ({len(secrets)}) are encrypted, new ones under {names[0]}"
        yield Finding(_SUBJECT, "ok", text)


def _problems(
    secrets: Sequence[tuple[StoredSecret, State]], *, has_key: bool
) -> Iterator[Finding]:
    def those(state: State) -> list[StoredSecret]:
        return [one for one, found in secrets if found == state]

    missing = those("missing")
    yield from _unreadable(missing, those("damaged"))
    if not has_key and not missing:
        yield Finding(_SUBJECT, "warning", NO_KEY)
    if clear := those("clear"):
        advice = f": {RESEAL}" if has_key else ""
        yield Finding(_SUBJECT, "warning", f"{in_words(clear)} in the store: in clear{advice}")
    if older := those("older"):
        text = f"{in_words(older)} under an older key {key_names(older)}: {RESEAL}"
        yield Finding(_SUBJECT, "warning", text)


def _unreadable(
    missing: Sequence[StoredSecret], damaged: Sequence[StoredSecret]
) -> Iterator[Finding]:
    if missing:
        text = f"{in_words(missing)} cannot be decrypted: the key {key_names(missing)} is not here"
        yield Finding(_SUBJECT, "error", f"{text}; {FIND_KEY}")
    for one in damaged:
        text = f"the {one.purpose} of {one.owner} was damaged in the store, or moved there"
        yield Finding(_SUBJECT, "error", text)


def _found_beside(missing: Sequence[str], source: KeySource) -> Iterator[Finding]:
    """Name the file next to the store if a missing key is in it: it is easily left out."""
    for name in missing:
        if file := source.unused_file_with(name):
            place = source.file or KEYS_VARIABLE
            text = f"the key {name} is in {file}: add its line to {place}, below the others"
            yield Finding(_SUBJECT, "error", text)


def _problems_of_key(config: Config, source: KeySource) -> Iterator[Finding]:
    file = source.file
    if file is None or not file.exists():
        return
    if file.stat().st_mode & _OF_OTHERS:
        yield Finding(_SUBJECT, "warning", f"{file} can be read by others: chmod o-rwx")
    in_production = config.auth.environment == "production"
    if in_production and not source.is_configured and source.has_clear_key():
        text = (
            f"{file}, the key, is next to the store: a copy of the folder has both; move it "
            "elsewhere and name it in [storage] keys_file"
        )
        yield Finding(_SUBJECT, "warning", text)
