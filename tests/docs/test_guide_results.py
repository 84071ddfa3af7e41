"""Results in the guide for integrators: published, read, corrected and found, word by word."""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path
from typing import Any

import pytest

from fhirpub.interactions.submission.parameters import MAX_MEMBERS
from fhirpub.plugin_host.loader import load
from fhirpub.testing.service import Integrator, RunningService
from tests.docs.guide import BLOCKS, TEXT, block, followed, given

pytestmark = pytest.mark.skipif(shutil.which("curl") is None, reason="the guide needs curl")


def bodies_of(printed: str) -> list[Any]:
    """Return the bodies in JSON that commands of the guide have printed, one after another."""
    decoder, found, at = json.JSONDecoder(), [], printed.find('{"resourceType"')
    while at >= 0:
        body, end = decoder.raw_decode(printed, at)
        found.append(body)
        at = printed.find('{"resourceType"', end)
    return found


def published_by(lab: Integrator, folder: Path) -> Any:
    """Return the response to the guide's registration."""
    settings, _token, keep, publish, *_rest = BLOCKS
    (body,) = bodies_of(followed([settings, keep, publish], folder, given(lab)))
    return body


def names_in(response: Any) -> list[tuple[str, str]]:
    """Return the name of each parameter, and the type that it has or refers to."""
    return [
        (
            one["name"],
            one["resource"]["resourceType"]
            if "resource" in one
            else one["valueReference"]["reference"].partition("/")[0],
        )
        for one in response["parameter"]
    ]


def references_in(response: Any) -> list[str]:
    """Return the addresses of what came with a report."""
    entries = response["parameter"]
    return [one["valueReference"]["reference"] for one in entries if "valueReference" in one]


def test_the_guides_report_causes_no_other_remark_than_that_loinc_is_not_held(
    service: RunningService, tmp_path: Path
) -> None:
    response = published_by(service.integrator(), tmp_path)

    created, *remarks = response["parameter"][-1]["resource"]["issue"]
    assert created["diagnostics"] == "DiagnosticReport was created"
    assert remarks
    assert {remark["severity"] for remark in remarks} == {"information"}
    assert all("http://loinc.org is not held" in remark["diagnostics"] for remark in remarks)


def test_the_guides_response_has_the_addresses_in_their_order(
    service: RunningService, tmp_path: Path
) -> None:
    (shown,) = (
        json.loads(text)
        for text in re.findall(r"^```json\n(.*?)^```$", TEXT, re.DOTALL | re.MULTILINE)
        if text.startswith('{"resourceType": "Parameters"')
    )

    assert names_in(shown) == names_in(published_by(service.integrator(), tmp_path))


def test_the_guide_leads_from_a_report_to_its_results_and_back(
    service: RunningService, tmp_path: Path
) -> None:
    lab = service.integrator()
    settings, _token, keep, _publish, read, *_rest = BLOCKS
    response = published_by(lab, tmp_path)
    short, results = response["parameter"][0]["resource"], references_in(response)[:3]
    known = given(lab) | {
        "ID": short["id"],
        "HB": results[0],
        "PATIENT": short["subject"]["reference"],
    }

    printed = followed([settings, keep, read, block("HB=…")], tmp_path, known)
    _report, hemoglobin, bundle = bodies_of(printed)
    of_reader = followed(
        [settings, keep, block("HB=…").partition("\n")[0], block("PATIENT=…")], tmp_path, known
    )
    newest, low, report = bodies_of(of_reader)

    assert hemoglobin["code"]["text"] == "Hemoglobin"
    assert hemoglobin["valueQuantity"]["value"] == 13.2
    assert addresses_in(bundle) == [f"DiagnosticReport/{short['id']}", *sorted(results)]
    assert addresses_in(newest) == addresses_in(low) == [results[0]]
    assert addresses_in(report) == [f"DiagnosticReport/{short['id']}"]


def addresses_in(bundle: Any) -> list[str]:
    """Return the matches in a Bundle, and then what it includes, sorted."""
    entries = [(entry["search"]["mode"], entry["resource"]) for entry in bundle["entry"]]
    found = [(mode == "include", f"{one['resourceType']}/{one['id']}") for mode, one in entries]
    return [address for _is_included, address in sorted(found)]


def test_the_guide_corrects_results(service: RunningService, tmp_path: Path) -> None:
    lab = service.integrator()
    settings, _token, keep, *_rest = BLOCKS
    published_by(lab, tmp_path)
    preliminary = followed([settings, keep, block("preliminary.json")], tmp_path, given(lab))
    (first,) = bodies_of(preliminary)
    known = given(lab) | {"LATER": first["parameter"][0]["resource"]["id"]}

    final, corrected = [item for item in BLOCKS if "final.json" in item]
    name = final.partition("\n")[0]
    revised = followed([settings, keep, final], tmp_path, known)
    (second,) = bodies_of(revised)
    then = [said_by(lab, address) for address in references_in(second)]
    corrected_one = followed([settings, keep, name, corrected], tmp_path, known)
    (third,) = bodies_of(corrected_one)

    assert preliminary.startswith("HTTP/1.1 201")
    assert revised.startswith("HTTP/1.1 200")
    assert corrected_one.startswith("HTTP/1.1 200")
    assert references_in(second)[0] == references_in(first)[0]
    assert then == [
        ("Hemoglobin", 13.2, "final", "2"),
        ("Leukocytes", 6.4, "final", "1"),
        ("Platelets", 248, "final", "1"),
    ]
    assert [said_by(lab, address) for address in references_in(third)] == [
        ("Hemoglobin", 12.3, "corrected", "3"),
        ("Platelets", 248, "entered-in-error", "2"),
    ]
    report = lab.get(f"/fhir/r4/DiagnosticReport/{known['LATER']}").json
    assert (report["status"], report["meta"]["versionId"]) == ("corrected", "3")


def said_by(lab: Integrator, address: str) -> tuple[str, float, str, str]:
    """Return what a result says, its value, its status and its version."""
    found = lab.get(f"/fhir/r4/{address}").json
    value = found["valueQuantity"]["value"]
    return found["code"]["text"], value, found["status"], found["meta"]["versionId"]


def test_the_guides_table_of_entries_is_what_the_plugin_declares() -> None:
    section = TEXT.partition("\n### Results, specimens and orders\n")[2].partition("\n### ")[0]
    rows = re.findall(r"^\| `(\w+)` \| (.*?) \| (.*) \|$", section, re.MULTILINE)
    declared = {
        part.name: part
        for part in load(["diagnosticreport"])["DiagnosticReport"].parts
        if part.repeats
    }

    assert [name for name, _what, _referring in rows] == list(declared)
    for name, what, referring in rows:
        assert set(re.findall(r"`([\w-]+)`", what)) == declared[name].statuses
        assert f"`{declared[name].referred_by}`" in referring
    assert f"together at most {MAX_MEMBERS:,}" in section
