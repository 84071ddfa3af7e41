"""The guide for integrators, followed word by word with bash and curl."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

import pytest

from fhirpub.config.settings import Config, PluginsConfig
from fhirpub.plugin_api.composition import author_of
from fhirpub.plugin_host.loader import load
from fhirpub.testing.service import Integrator, RunningService
from tests.audit_trail import a_record, fill
from tests.docs.guide import BLOCKS, TEXT, block, body_of, followed, given
from tests.node.packages import Scripts

APART = (
    *("amended.xml", "scanned.json", "prescription.json", "openapi.json"),
    *("pip install", "npm install"),
    *("HB=", "PATIENT=", "PERSON=", "preliminary.json", "final.json", "batch.json"),
    *("oauth/revoke", "client_assertion", "private.jwk.json"),
)
FIRST = [item for item in BLOCKS if not any(word in item for word in APART)]
_SECTION = TEXT.partition("\n## 5. ")[2].partition("\n## ")[0]
_SEARCHES = [
    item.replace(r"\|", "|") for item in re.findall(r"^\| `(.*?=.*?)` \|", _SECTION, re.MULTILINE)
]
SEARCHES = [item for item in _SEARCHES if "?" not in item]
"""The searches of the guide's table; each finds the report that the guide published."""
OF_RESULTS = [item for item in _SEARCHES if "?" in item]
"""The searches of its table of what was registered with reports."""

OF_AUDIT = [
    item.replace("<id>", "1").replace("<client id>", "1").replace("<request id>", "1")
    for item in re.findall(r"^\| `(AuditEvent\?.*?)` \|", TEXT, re.MULTILINE)
]
"""The searches of its table of the audit trail."""

pytestmark = pytest.mark.skipif(shutil.which("curl") is None, reason="the guide needs curl")


def test_the_guide_leads_from_credentials_to_a_token(
    service: RunningService, tmp_path: Path
) -> None:
    lab = service.integrator()

    answer = json.loads(followed(BLOCKS[:2], tmp_path, given(lab)))

    assert answer["token_type"] == "Bearer"


def test_the_guide_revokes_a_token(service: RunningService, tmp_path: Path) -> None:
    lab = service.integrator()
    assert lab.get("/fhir/r4/DiagnosticReport").status == 200

    done = followed([BLOCKS[0], BLOCKS[2], block("oauth/revoke")], tmp_path, given(lab))

    assert done.startswith("HTTP/1.1 200")
    assert lab.get("/fhir/r4/DiagnosticReport").problems == ["token-revoked"]


def test_the_guide_publishes_reads_updates_and_finds_a_report(
    service: RunningService, tmp_path: Path
) -> None:
    lab = service.integrator()
    settings, _token, keep, publish, read, *others = FIRST
    known = given(lab)
    published = followed([settings, keep, publish], tmp_path, known)
    known["ID"] = re.findall(r"DiagnosticReport/([^/]+)/_history/1", published)[0]

    rest = followed([settings, keep, read, *others], tmp_path, known)

    assert published.startswith("HTTP/1.1 201")
    assert re.findall(r"HTTP/1.1 (\d+)", rest) == ["200", "204", "204"]
    assert json.loads(rest.splitlines()[-1])["total"] == 1
    assert len(SEARCHES) > 20
    for search in SEARCHES:
        path = f"/fhir/r4/DiagnosticReport?{search.replace('|', '%7C')}"
        answer = lab.get(path, Prefer="handling=strict")
        assert answer.status == 200, search
        assert answer.json.get("total", 1) == 1, search
    assert len(OF_RESULTS) > 5
    for search in OF_RESULTS:
        answer = lab.get(f"/fhir/r4/{search.replace('|', '%7C')}", Prefer="handling=strict")
        assert answer.status == 200, search
    amended = followed([settings, keep, read, block("amended.xml")], tmp_path, known)
    assert re.findall(r"HTTP/1.1 (\d+)", amended) == ["200", "204"]
    assert '<conclusion value="Hemoglobin 13.2 g/dL, confirmed"/>' in amended


def test_the_json_patch_of_the_guide_fails_the_second_time(
    service: RunningService, tmp_path: Path
) -> None:
    lab = service.integrator()
    settings, _token, keep, publish, *_others = FIRST
    known = given(lab)
    published = followed([settings, keep, publish], tmp_path, known)
    known["ID"] = re.findall(r"DiagnosticReport/([^/]+)/_history/1", published)[0]
    patch = block('"op": "test"')

    done = followed(
        [settings, keep, "ID=…", block("13.2 g/dL\"}'"), patch, patch], tmp_path, known
    )

    assert re.findall(r"HTTP/1.1 (\d+)", done) == ["204", "204", "422"]


def test_the_guide_finds_everything_of_a_person(service: RunningService, tmp_path: Path) -> None:
    lab = service.integrator()
    settings, _token, keep, publish, *_others = FIRST
    known = given(lab)
    followed([settings, keep, publish], tmp_path, known)
    (person,) = lab.get("/fhir/r4/Patient?identifier=30111222").json["entry"]
    known["PERSON"] = person["resource"]["id"]

    found = decoded(followed([settings, keep, block("PERSON=")], tmp_path, known))

    assert [bundle["total"] for bundle in found] == [1, 1, 1, 1]
    kinds = [bundle["entry"][0]["resource"]["resourceType"] for bundle in found]
    assert kinds == ["Patient", "Patient", "DiagnosticReport", "Observation"]


def test_the_guide_finds_who_has_read_about_a_patient(
    service: RunningService, tmp_path: Path
) -> None:
    lab = service.integrator(scopes=("system/DiagnosticReport.cruds", "system/AuditEvent.rs"))
    settings, _token, keep, *_others = FIRST
    known = {**given(lab), "PATIENT": "Patient/1"}
    record = a_record(patients=("Patient/1",), what=("DiagnosticReport/1",))
    fill(service, lab.tenant.id, [record])

    (bundle,) = decoded(followed([settings, keep, block("fhir/r4/AuditEvent")], tmp_path, known))

    (entry,) = bundle["entry"]
    assert entry["resource"]["action"] == "R"
    assert len(OF_AUDIT) == 6
    for search in OF_AUDIT:
        answer = lab.get(f"/fhir/r4/{search}", Prefer="handling=strict")
        assert answer.status == 200, search


def test_the_guide_sends_a_batch(service: RunningService, tmp_path: Path) -> None:
    settings, _token, keep, publish, *_others = FIRST
    known = given(service.integrator())
    followed([settings, keep, publish], tmp_path, known)

    (answer,) = decoded(followed([settings, keep, block("batch.json")], tmp_path, known))

    registered, found = answer["entry"]
    assert registered["response"]["status"] == "201 Created"
    assert "registered by an earlier call" in str(registered["response"]["outcome"])
    assert found["resource"]["total"] == 1


def decoded(text: str) -> list[Any]:
    """Return the JSON values that follow one another in a text."""
    found, decoder, rest = [], json.JSONDecoder(), text.strip()
    while rest:
        value, end = decoder.raw_decode(rest)
        found.append(value)
        rest = rest[end:].strip()
    return found


def example(language: str) -> str:
    """Return the guide's one example in a language."""
    (found,) = re.findall(rf"^```{language}\n(.*?)^```$", TEXT, re.DOTALL | re.MULTILINE)
    return str(found)


def updated_once(lab: Integrator) -> list[tuple[str, str, str]]:
    """Return the reports of a tenant: identifier, version and status of each."""
    bundle = lab.get("/fhir/r4/DiagnosticReport").json
    found = [entry["resource"] for entry in bundle["entry"]]
    return [(r["identifier"][0]["value"], r["meta"]["versionId"], r["status"]) for r in found]


def exported(lab: Integrator) -> list[str]:
    """Return the variables that the guide exports."""
    (names,) = re.findall(r"`export ([A-Z_ ]+)`", TEXT)
    return [f"{name}={given(lab)[name]}" for name in names.split()]


CONCLUSION = "All values lie within the reference ranges."


def in_python(
    lab: Integrator, folder: Path, language: str = "python"
) -> subprocess.CompletedProcess[str]:
    """Run one of the guide's two examples: that with a library, or that with its own client."""
    return subprocess.run(
        ["env", *exported(lab), sys.executable, "-W", "error", "-c", example(language)],
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
    )


def register_other_content(lab: Integrator, written: str = "") -> None:
    """Register another report under the identifier of the guide's one."""
    body = json.loads(written or body_of("register.json"))
    body["parameter"][2]["resource"]["conclusion"] = "Another one"
    assert lab.register(body).status == 201


def follow_to_the_python_client(lab: Integrator, folder: Path) -> None:
    """Publish the report of section 2, and write the files of the example."""
    settings, _token, keep, publish, *_others = FIRST
    followed([settings, keep, publish, block("scanned.json")], folder, given(lab))


def test_the_example_of_the_python_client_works_after_section_2(
    service: RunningService, tmp_path: Path
) -> None:
    lab = service.integrator()
    follow_to_the_python_client(lab, tmp_path)

    run = in_python(lab, tmp_path, "py")

    assert run.returncode == 0, run.stderr
    registered, version, *found = run.stdout.splitlines()
    assert registered.startswith("registered ")
    assert registered.endswith(" now")
    assert version == "version 2"
    assert [line.endswith(f" {CONCLUSION}") for line in found] == [True]


def test_the_example_of_the_python_client_stops_at_other_content(
    service: RunningService, tmp_path: Path
) -> None:
    lab = service.integrator()
    follow_to_the_python_client(lab, tmp_path)
    register_other_content(lab, (tmp_path / "scanned.json").read_text(encoding="utf-8"))

    run = in_python(lab, tmp_path, "py")

    assert "has this identifier, and other content" in run.stderr


def test_the_guides_example_in_python_works(service: RunningService, tmp_path: Path) -> None:
    lab = service.integrator()
    (tmp_path / "register.json").write_text(body_of("register.json"), encoding="utf-8")

    run = in_python(lab, tmp_path)

    assert run.returncode == 0, run.stderr
    assert run.stdout.startswith("version 2\n")
    assert run.stdout.endswith(f" {CONCLUSION}\n")
    assert updated_once(lab) == [("NQ-1001", "2", "corrected")]


def test_the_guides_example_in_python_stops_at_other_content(
    service: RunningService, tmp_path: Path
) -> None:
    lab = service.integrator()
    (tmp_path / "register.json").write_text(body_of("register.json"), encoding="utf-8")
    register_other_content(lab)

    run = in_python(lab, tmp_path)

    assert "has this identifier, and other content" in run.stderr
    assert updated_once(lab) == [("NQ-1001", "1", "final")]


def test_the_guides_example_in_javascript_stops_at_other_content(
    service: RunningService, node: Scripts
) -> None:
    lab = service.integrator()
    (node.folder / "register.json").write_text(body_of("register.json"), encoding="utf-8")
    (node.folder / "guide.mjs").write_text(example("js"), encoding="utf-8")
    register_other_content(lab)

    with pytest.raises(AssertionError, match="has this identifier, and other content"):
        node.run("guide.mjs", variables=exported(lab))

    assert updated_once(lab) == [("NQ-1001", "1", "final")]


def test_the_guides_example_in_javascript_works(service: RunningService, node: Scripts) -> None:
    lab = service.integrator()
    (node.folder / "register.json").write_text(body_of("register.json"), encoding="utf-8")
    (node.folder / "guide.mjs").write_text(example("js"), encoding="utf-8")

    printed = node.run("guide.mjs", variables=exported(lab))

    assert printed.endswith(f" {CONCLUSION}\n")
    assert updated_once(lab) == [("NQ-1001", "2", "corrected")]


def test_the_guides_other_types_are_served_when_they_are_turned_on(tmp_path: Path) -> None:
    (turned_on,) = re.findall(r"^```toml\n(.*?)^```$", TEXT, re.DOTALL | re.MULTILINE)
    enabled = tomllib.loads(turned_on)["plugins"]["enabled"]
    settings, _token, keep, *_rest = BLOCKS
    with RunningService(tmp_path, config=Config(plugins=PluginsConfig(enabled=enabled))) as on:
        prescribed = followed(
            [settings, keep, block("prescription.json")], tmp_path, given(on.integrator())
        )

    assert prescribed.startswith("HTTP/1.1 201")


def test_the_guides_table_of_other_types_is_what_their_plugins_declare() -> None:
    rows = re.findall(
        r"^\| ([A-Z]\w+) \| `(\w+)` \| `(\w+)` \| `(\S+)` \| (.*) \|$", TEXT, re.MULTILINE
    )

    types = load([word for _name, word, *_rest in rows])

    assert len(rows) == 5
    for name, word, entry, author, updatable in rows:
        declared = types[name]
        assert (word, entry) == (name.lower(), declared.entry_name)
        assert author in {part.referred_by for part in declared.parts}
        assert set(re.findall(r"`(\S+)`", updatable)) == declared.updatable


def test_the_guides_author_is_the_one_of_its_prescription() -> None:
    (author,) = re.findall(r'^```json\n(\{"author_type".*?)^```$', TEXT, re.DOTALL | re.MULTILINE)
    body = json.loads(body_of("prescription.json"))

    assert author_of(body["parameter"][1]["resource"]) == json.loads(author)
