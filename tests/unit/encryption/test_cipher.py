"""The secrets of a store, as they are stored."""

from __future__ import annotations

import base64

import pytest

from fhirpub.encryption.cipher import LOST_KEY, SecretCipher, key_name_in, name_of
from fhirpub.errors import ConfigurationError, SecretsUnavailable
from fhirpub.sealed import MARK, is_sealed

OLD, NEW = bytes(32), bytes(range(32))
SECRET = "whsec_AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8="


def sealed(*keys: bytes) -> bytes:
    return SecretCipher(keys).encrypt(SECRET, endpoint="e1", purpose="secret")


SALT = bytes(range(32))


def stored(*keys: bytes, owner: str = "t1") -> bytes:
    return SecretCipher(keys).seal(SALT, owner=owner, purpose="salt")


def opened(seal: SecretCipher, text: bytes) -> str:
    return seal.decrypt(text, endpoint="e1", purpose="secret")


def line(key: bytes) -> str:
    return base64.b64encode(key).decode()


def test_what_was_sealed_is_opened() -> None:
    assert opened(SecretCipher([NEW]), sealed(NEW)) == SECRET


def test_what_is_sealed_does_not_show_it_and_differs_each_time() -> None:
    assert SECRET.encode() not in sealed(NEW)
    assert sealed(NEW) != sealed(NEW)


def test_the_first_key_seals_and_all_open() -> None:
    both = SecretCipher([NEW, OLD])

    assert opened(both, sealed(OLD)) == SECRET
    assert both.is_of_first(sealed(NEW))
    assert not both.is_of_first(sealed(OLD))


def test_it_opens_for_its_own_endpoint_and_purpose_alone() -> None:
    seal = SecretCipher([NEW])

    for endpoint, purpose in (("e2", "secret"), ("e1", "token")):
        with pytest.raises(SecretsUnavailable, match="webhooks cannot be used"):
            seal.decrypt(sealed(NEW), endpoint=endpoint, purpose=purpose)  # type: ignore[arg-type]


@pytest.mark.parametrize("place", [0, 3, 9, 30, -1])
def test_a_changed_byte_is_noticed(place: int) -> None:
    changed = bytearray(sealed(NEW))
    changed[place] ^= 1

    with pytest.raises(SecretsUnavailable):
        opened(SecretCipher([NEW]), bytes(changed))


@pytest.mark.parametrize("length", [0, 1, 4, 5, 16, 17, 32])
def test_what_was_cut_off_is_noticed(length: int) -> None:
    with pytest.raises(SecretsUnavailable):
        opened(SecretCipher([NEW]), sealed(NEW)[:length])


def test_without_any_key_the_lost_one_is_asked_for() -> None:
    with pytest.raises(SecretsUnavailable) as caught:
        opened(SecretCipher(), sealed(NEW))

    assert caught.value.reason == LOST_KEY


def test_a_missing_key_is_distinguished_from_damage() -> None:
    with pytest.raises(SecretsUnavailable) as caught:
        opened(SecretCipher([OLD]), sealed(NEW))

    assert "under a key that is not here" in caught.value.reason


def test_without_a_key_the_reason_says_what_to_do() -> None:
    nothing = SecretCipher()

    assert not nothing
    with pytest.raises(SecretsUnavailable) as caught:
        nothing.encrypt(SECRET, endpoint="e1", purpose="secret")
    assert "openssl rand -base64 32" in caught.value.reason


def test_no_key_is_in_its_repr() -> None:
    assert line(NEW) not in repr(SecretCipher([NEW]))
    assert repr(NEW) not in repr(SecretCipher([NEW]))


def test_a_salt_is_stored_encrypted_and_read_in_clear() -> None:
    cipher = SecretCipher([NEW])

    assert is_sealed(stored(NEW))
    assert SALT not in stored(NEW)
    assert cipher.unseal(stored(NEW), owner="t1", purpose="salt") == SALT


def test_a_salt_in_clear_is_read_with_and_without_a_key() -> None:
    for keys in ([], [NEW]):
        assert SecretCipher(keys).unseal(SALT, owner="t1", purpose="salt") == SALT


def test_without_a_key_a_salt_is_stored_in_clear() -> None:
    assert SecretCipher().seal(SALT, owner="t1", purpose="salt") == SALT


def test_what_cannot_be_decrypted_is_returned_and_stored_as_it_is() -> None:
    for other in (SecretCipher(), SecretCipher([OLD])):
        unread = other.unseal(stored_once := stored(NEW), owner="t1", purpose="salt")

        assert unread == stored_once
        assert other.seal(unread, owner="t1", purpose="salt") == stored_once


def test_a_salt_is_of_no_use_to_another_tenant_or_as_another_secret() -> None:
    cipher = SecretCipher([NEW])

    assert is_sealed(cipher.unseal(stored(NEW), owner="t2", purpose="salt"))
    assert is_sealed(cipher.unseal(stored(NEW), owner="t1", purpose="private key"))


def test_a_salt_is_of_no_use_to_a_tenant_whose_id_begins_or_ends_alike() -> None:
    cipher, owner = SecretCipher([NEW]), "7d1a0000-0000-4000-8000-000000000001"
    salt = cipher.seal(SALT, owner=owner, purpose="salt")

    for other in (f"{owner[:-1]}2", f"8{owner[1:]}", owner.upper(), owner[:8]):
        assert cipher.unseal(salt, owner=other, purpose="salt") == salt
    assert cipher.unseal(salt, owner=owner, purpose="salt") == SALT


@pytest.mark.parametrize("length", range(0, 60, 4))
def test_a_salt_that_was_cut_off_is_returned_as_it_is_stored(length: int) -> None:
    cut = stored(NEW)[: len(MARK) + length]

    assert SecretCipher([NEW]).unseal(cut, owner="t1", purpose="salt") == cut


def test_keys_in_another_order_are_other_keys() -> None:
    read = [NEW, OLD]
    cipher = SecretCipher([OLD, NEW], read=lambda: read)

    assert cipher.reload()
    assert cipher.is_of_first(sealed(NEW))
    assert not cipher.reload()


@pytest.mark.parametrize(
    ("keys", "value", "state"),
    [
        ([NEW], SALT, "clear"),
        ([NEW, OLD], stored(NEW), "first"),
        ([NEW, OLD], stored(OLD), "older"),
        ([NEW], stored(OLD), "missing"),
        ([], stored(OLD), "missing"),
        ([NEW], stored(NEW, owner="t2"), "damaged"),
        ([NEW], stored(NEW)[:-1], "damaged"),
        ([NEW], MARK, "missing"),
    ],
    ids=["clear", "first", "older", "lost", "without-keys", "moved", "cut", "empty"],
)
def test_the_state_of_a_stored_value_is_known(keys: list[bytes], value: bytes, state: str) -> None:
    assert SecretCipher(keys).state(value, owner="t1", purpose="salt") == state


def test_a_stored_value_names_its_key() -> None:
    assert key_name_in(stored(NEW)) == name_of(NEW) == SecretCipher([NEW]).names[0]
    assert name_of(NEW) not in line(NEW)


def test_keys_are_read_again_and_take_over() -> None:
    found = [[OLD], [NEW, OLD]]
    cipher = SecretCipher([OLD], read=lambda: found.pop(0))

    assert [cipher.reload(), cipher.reload()] == [False, True]
    assert cipher.keys == (NEW, OLD)


def test_keys_that_are_gone_stay_in_use() -> None:
    cipher = SecretCipher([OLD], read=lambda: ())

    assert not cipher.reload()
    assert cipher.keys == (OLD,)


def test_keys_stay_in_use_while_the_others_cannot_be_read() -> None:
    def broken() -> list[bytes]:
        raise ConfigurationError("half a line")

    cipher = SecretCipher([OLD], read=broken)

    with pytest.raises(ConfigurationError):
        cipher.reload()
    assert cipher.keys == (OLD,)
