"""The image builds, and serves on a read-only file system as a user without rights.

This makes a base of Debian's packages and takes minutes: ``scripts/test --full`` runs it.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from contextlib import contextmanager
from os import chown
from pathlib import Path

import pytest

from fhirpub.config.loader import variable
from tests.deploy.containers import Container, build, health_check, missing_tools, running
from tests.deploy.test_chart import LEAST, environment, manifests, of_kind, pods
from tests.ports import free_ports

ASK = "import urllib.request as u; print(u.urlopen('http://127.0.0.1:{}{}').read().decode())"
FLAGS = """
from pathlib import Path
print({path.read_bytes()[4] for path in Path("/opt/fhirpub").rglob("*.pyc")})
"""
IMAGE = "localhost/fhirpub:tests"
CONSTRAINTS = Path(__file__).parents[2] / "constraints" / "service.txt"
SITE = "import sysconfig; print(sysconfig.get_path('purelib'))"
SAMPLE = "import fhirpub.cli.demo; print(fhirpub.cli.demo.__path__[0])"

pytestmark = [
    pytest.mark.skipif(
        not variable("FHIRPUB_TEST_FULL"), reason="scripts/test --full builds the image"
    ),
    pytest.mark.skipif(
        bool(missing_tools()), reason=f"no image without {', '.join(missing_tools())}"
    ),
]


@contextmanager
def serving() -> Iterator[Container]:
    port = free_ports(2)
    settings = {
        "FHIRPUB_SERVER__PORT": str(port),
        "FHIRPUB_SERVER__BASE_URL": f"http://127.0.0.1:{port}",
        "FHIRPUB_METRICS__PORT": str(port + 1),
    }
    with running(IMAGE, f"fhirpub-{port}", settings) as container:
        yield container


@pytest.fixture(scope="module")
def container() -> Iterator[Container]:
    build(IMAGE)
    with serving() as container:
        yield container


def test_its_user_has_no_rights_and_no_file_of_the_image_can_be_changed(
    container: Container,
) -> None:
    assert re.match(r"uid=10001\(fhirpub\) gid=10001\(fhirpub\)", container.run("id"))
    assert container.refuses("touch", "/opt/fhirpub/written")
    assert container.refuses("touch", "/tmp/written")
    assert not container.refuses("touch", "/var/lib/fhirpub/written")
    assert re.search(r"^CapEff:\s+0+$", container.run("cat", "/proc/1/status"), re.MULTILINE)


def test_it_holds_the_wheel_and_what_it_requires_and_nothing_else(container: Container) -> None:
    folder = container.run("python", "-c", SITE)
    names = container.run("ls", folder).splitlines()
    installed = {
        name.partition("-")[0].replace("_", "-").lower()
        for name in names
        if name.endswith(".dist-info")
    }
    pinned = re.findall(r"^([a-z0-9-]+)==", CONSTRAINTS.read_text(), re.MULTILINE)

    assert installed - {"typing-extensions"} == {"fhirpub", *pinned} - {"typing-extensions"}
    assert container.refuses("ls", "/build")
    assert container.refuses("ls", "/tools")
    assert container.refuses("ls", "/opt/fhirpub/bin/pip")


def test_its_compiled_files_hold_no_times_which_would_differ_in_each_build(
    container: Container,
) -> None:
    # The flags in the head of a file: 1 is a hash that is not checked (PEP 552).
    assert container.run("python", "-c", FLAGS) == "{1}"


def test_its_health_check_fails_when_nothing_is_served(container: Container) -> None:
    assert not container.refuses(*health_check(IMAGE))
    assert container.refuses("env", "FHIRPUB_SERVER__PORT=1", *health_check(IMAGE))


def test_a_client_that_was_added_in_it_publishes(container: Container) -> None:
    tenant = json.loads(container.run("fhirpub", "tenant", "add", "Lab Uno", "--json"))["id"]
    scope = "system/DiagnosticReport.cruds"
    add = ["client", "add", "--tenant", tenant, "--scope", scope, "--json"]
    client = json.loads(container.run("fhirpub", *add))
    sample = container.run("python", "-c", SAMPLE) + "/sample"

    published = container.run(
        "env",
        f"FHIRPUB_CLIENT_ID={client['client_id']}",
        f"FHIRPUB_CLIENT_SECRET={client['client_secret']}",
        *["fhirpub", "publish", f"{sample}/register.json", "--document", f"{sample}/report.pdf"],
        "--json",
    )

    answer = json.loads(published)
    assert (answer["type"], answer["version"], answer["replayed"]) == (
        "DiagnosticReport",
        "1",
        False,
    )


@pytest.mark.usefixtures("container")
def test_a_pod_of_the_chart_serves_what_is_in_the_store(tmp_path: Path, mongodb_url: str) -> None:
    found = manifests(tmp_path, LEAST)
    pod = pods(found)["server"]["containers"][0]
    port = free_ports(2)
    mounts = {item["name"]: item["mountPath"] for item in pod["volumeMounts"]}
    config, keys = tmp_path / "config", tmp_path / "keys"
    config.write_text(of_kind(found, "ConfigMap")[0]["data"]["fhirpub.toml"], encoding="utf-8")
    keys.write_text("QUFBQUFBQUFBQUFBQUFBQUFBQUFBQUFBQUFBQUFBQUE=\n", encoding="utf-8")
    # As Kubernetes does with the group of a pod.
    keys.chmod(0o440)
    chown(keys, 0, 10001)
    options = [
        f"--volume={config}:{mounts['config']}:ro",
        f"--volume={keys}:{mounts['store']}/keys:ro",
    ]
    settings = environment(pods(found)["server"]) | {
        "FHIRPUB_STORAGE__URL": mongodb_url,
        "FHIRPUB_SERVER__PORT": str(port),
        "FHIRPUB_METRICS__PORT": str(port + 1),
    }

    name = f"fhirpub-{port}"
    with running(IMAGE, name, settings, options=options, command=pod["args"]) as server:
        checked = server.run("fhirpub", "check")
        assert "are encrypted" in checked
        assert "by others" not in checked
        assert "ready" in server.run("python", "-c", ASK.format(port, "/health/ready"))
        assert "fhirpub_info" in server.run("python", "-c", ASK.format(port + 1, "/metrics"))


@pytest.mark.usefixtures("container")
def test_it_stops_with_status_0() -> None:
    with serving() as another:
        assert another.stop() == 0
