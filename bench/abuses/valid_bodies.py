"""Abuses by bodies that the service accepts: large, dense, or many."""

from __future__ import annotations

import os

from bench.abuses import bodies
from bench.abuses.attack import FHIR_XML, REGISTER, VALIDATE, Attack, Phases, abuse
from bench.abuses.bodies import RESOURCE, SMALL, Body
from bench.payloads import SMALL_DOCUMENT, Caller, RegisterRequests
from tests.bodies import document

_REPORT = 2_500
"""What the other elements of a registration take of a size."""
_DOCUMENT = 5 * 1024 * 1024


async def _registered_again_and_again(attack: Attack, body: Body, media_type: str = "") -> None:
    kind = {"media_type": media_type} if media_type else {}
    await attack.flood(attack.post_new(REGISTER, body, **kind))


@abuse(201)
async def registrations(attack: Attack) -> Phases:
    """Registers ordinary reports of 3 KB: no abuse, for comparison."""
    caller = Caller("abuser", attack.token)
    requests = RegisterRequests(caller, SMALL_DOCUMENT)
    yield
    await attack.flood(map(requests.request, range(10**6)))


@abuse(201)
async def documents_5mb(attack: Attack) -> Phases:
    """Registers documents of 5 MB."""
    requests = RegisterRequests(Caller("abuser", attack.token), _DOCUMENT)
    yield
    await attack.flood(map(requests.request, range(10**6)))


@abuse(201)
async def extensions_64kb(attack: Attack) -> Phases:
    """Registers 64 KB of valid extensions."""
    body = bodies.registration(**bodies.extensions(SMALL - _REPORT))
    yield
    await _registered_again_and_again(attack, body)


@abuse(201)
async def extensions_8mb(attack: Attack) -> Phases:
    """Registers 8 MB of valid extensions, as many as the limit of values allows."""
    body = bodies.registration(**bodies.extensions(RESOURCE))
    yield
    await _registered_again_and_again(attack, body)


@abuse(201)
async def codings_64kb(attack: Attack) -> Phases:
    """Registers 64 KB of codings, each of which is a search value."""
    body = bodies.registration(**bodies.codings(SMALL - _REPORT))
    yield
    await _registered_again_and_again(attack, body)


@abuse(201)
async def codings_8mb(attack: Attack) -> Phases:
    """Registers 8 MB of codings, each of which is a search value."""
    body = bodies.registration(**bodies.codings(RESOURCE))
    yield
    await _registered_again_and_again(attack, body)


@abuse(201)
async def contained_64kb(attack: Attack) -> Phases:
    """Registers 64 KB of contained resources, each of which refers to the next one."""
    body = bodies.registration(**bodies.contained_chain(SMALL - _REPORT))
    yield
    await _registered_again_and_again(attack, body)


@abuse(201)
async def contained_8mb(attack: Attack) -> Phases:
    """Registers 8 MB of contained resources, each of which refers to the next one."""
    body = bodies.registration(**bodies.contained_chain(RESOURCE))
    yield
    await _registered_again_and_again(attack, body)


@abuse(201)
async def performers_64kb(attack: Attack) -> Phases:
    """Registers 64 KB of performers."""
    body = bodies.registration(**bodies.performers(SMALL - _REPORT))
    yield
    await _registered_again_and_again(attack, body)


@abuse(201)
async def performers_8mb(attack: Attack) -> Phases:
    """Registers 8 MB of performers."""
    body = bodies.registration(**bodies.performers(RESOURCE))
    yield
    await _registered_again_and_again(attack, body)


@abuse(201)
async def spaced_64kb(attack: Attack) -> Phases:
    """Registers 64 KB of valid extensions with line breaks, for the slow parser."""
    body = bodies.spaced_registration(**bodies.extensions(SMALL - 26_000))
    yield
    await _registered_again_and_again(attack, body)


@abuse(201)
async def narratives_60kb(attack: Attack) -> Phases:
    """Registers narratives of 7,000 nested elements."""
    body = bodies.registration(**bodies.narrative(7_000, levels=200))
    yield
    await _registered_again_and_again(attack, body)


@abuse(201)
async def namespaces_38kb(attack: Attack) -> Phases:
    """Registers narratives of 1,500 elements in the scope of 1,800 namespaces."""
    body = bodies.registration(**bodies.namespaces(30, elements=1_500))
    yield
    await _registered_again_and_again(attack, body)


@abuse(201)
async def repeated_28mb(attack: Attack) -> Phases:
    """Registers the same report with four documents of 5 MB again and again."""
    documents = [document(os.urandom(_DOCUMENT)) for _ in range(4)]
    body = bodies.registration(presentedForm=documents).whole
    yield
    await attack.flood(attack.post(REGISTER, body))


@abuse(201)
async def xml_64_levels(attack: Attack) -> Phases:
    """Registers XML of 60 KB in which extensions are nested as deep as the limit allows."""
    chains = [bodies.nested_extensions(28)] * 60
    body = bodies.registration_in_xml(extension=chains)
    yield
    await _registered_again_and_again(attack, body, FHIR_XML)


@abuse(201)
async def xml_8mb(attack: Attack) -> Phases:
    """Registers XML of 8 MB with as many extensions as the limit of values allows."""
    body = bodies.registration_in_xml(**bodies.extensions(RESOURCE - 1_500_000))
    yield
    await _registered_again_and_again(attack, body, FHIR_XML)


@abuse(200)
async def validations(attack: Attack) -> Phases:
    """Validates ordinary reports of 3 KB over 16 connections."""
    body = bodies.registration().whole
    yield
    await attack.flood(attack.post(VALIDATE, body), connections=16)


@abuse(200)
async def validations_64kb(attack: Attack) -> Phases:
    """Validates 64 KB of codings over 16 connections."""
    body = bodies.registration(**bodies.codings(SMALL - _REPORT)).whole
    yield
    await attack.flood(attack.post(VALIDATE, body), connections=16)
