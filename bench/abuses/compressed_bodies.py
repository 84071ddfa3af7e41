"""Abuses by bodies in gzip, which are small until they are decoded."""

from __future__ import annotations

import gzip

from bench.abuses import bodies
from bench.abuses.attack import REGISTER, VALIDATE, Attack, Phases, abuse
from bench.abuses.connections import hold

_MIB = 1024 * 1024
_GZIP = "Content-Encoding: gzip"
_EMPTY_BLOCK = b"\x00\x00\x00\xff\xff"
"""A block of deflate without any bytes."""
_HEAD = b"\x1f\x8b\x08\x00\x00\x00\x00\x00\x00\xff"


@abuse(400)
async def gzip_zeros_32mb(attack: Attack) -> Phases:
    """Registers 32 KB of gzip that decode to 32 MiB of zeros."""
    body = gzip.compress(bytes(32 * _MIB))
    yield
    await attack.flood(attack.post(REGISTER, body, _GZIP))


@abuse(413)
async def gzip_zeros_1gb(attack: Attack) -> Phases:
    """Registers 1 MB of gzip that would decode to 1 GiB of zeros."""
    body = gzip.compress(bytes(1024 * _MIB))
    yield
    await attack.flood(attack.post(REGISTER, body, _GZIP))


@abuse(400)
async def gzip_members(attack: Attack) -> Phases:
    """Registers 1 MB of gzip streams, one behind the other."""
    body = gzip.compress(b"") * 50_000
    yield
    await attack.flood(attack.post(REGISTER, body, _GZIP))


@abuse(400)
async def gzip_empty_blocks(attack: Attack) -> Phases:
    """Registers 1 MB of gzip that decode to nothing."""
    body = _HEAD + _EMPTY_BLOCK * 200_000
    yield
    await attack.flood(attack.post(REGISTER, body, _GZIP))


@abuse(201)
async def gzip_blanks_28mb(attack: Attack) -> Phases:
    """Registers a valid report behind 28 MB of blanks, in 30 KB of gzip."""
    body = gzip.compress(b" " * bodies.LONG + bodies.registration().whole)
    yield
    await attack.flood(attack.post(REGISTER, body, _GZIP))


@abuse(200)
async def gzip_validations_8mb(attack: Attack) -> Phases:
    """Validates 8 MB of valid extensions in gzip, as many as the limit of values allows."""
    body = gzip.compress(bodies.registration(**bodies.extensions(bodies.RESOURCE)).whole)
    yield
    await attack.flood(attack.post(VALIDATE, body, _GZIP))


@abuse(400)
async def gzip_structures_32mb(attack: Attack) -> Phases:
    """Validates 32 MB of opening braces in gzip."""
    body = gzip.compress(b'{"a":' * (6 * _MIB))
    yield
    await attack.flood(attack.post(VALIDATE, body, _GZIP))


@abuse("held", 408, 503)
async def gzip_almost_sent_31mb(attack: Attack) -> Phases:
    """Sends 31 KB that decode to 31 MiB over 64 connections, and keeps the end back."""
    body = gzip.compress(bytes(31 * _MIB)) + bytes(1_000)
    head = attack.head(f"POST {REGISTER}", _GZIP, length=len(body))
    yield
    await attack.repeat(lambda: hold(attack, head, body[:-1_100], more=b""), 64)
