"""Build fhirpub: the core, the plugins on the shelf, and the schemas that both read."""

from __future__ import annotations

from pathlib import Path

from setuptools import find_packages, setup

ROOT = Path(__file__).parent
SHELF = sorted(path.name for path in (ROOT / "plugins").glob("fhirpub_*") if path.is_dir())
VERSION = next(
    line.split('"')[1]
    for line in (ROOT / "fhirpub" / "__init__.py").read_text(encoding="utf-8").splitlines()
    if line.startswith("__version__")
)

setup(
    name="fhirpub",
    version=VERSION,
    description="Publish diagnostic reports over FHIR R4: one call, safe to repeat.",
    long_description=(ROOT / "README.md").read_text(encoding="utf-8"),
    long_description_content_type="text/markdown",
    license="Apache-2.0",
    python_requires=">=3.11",
    packages=[
        *find_packages(include=["fhirpub", "fhirpub.*"]),
        "fhirpub.schemas",
        *SHELF,
    ],
    package_dir={"fhirpub.schemas": "schemas", **{name: f"plugins/{name}" for name in SHELF}},
    package_data={
        "fhirpub": ["py.typed"],
        "fhirpub.schemas": [
            "*.json",
            "r4/*.json",
            "valuesets/*.json",
            "xml/*.json",
            "events/*.json",
            "source/*.json",
            "README.md",
        ],
        "fhirpub.cli.demo": ["sample/*"],
        "fhirpub.console": ["templates/*", "files/*"],
        "fhirpub.web": ["root.html"],
        "fhirpub.cli.scaffold": ["plugin_template/*"],
        **{name: ["*.json"] for name in SHELF},
    },
    # Every lower bound has a reason: it is the first release with what we rely on, and without the
    # vulnerabilities in constraints/vulnerabilities.toml.
    install_requires=[
        "tornado>=6.6.1",  # percent-decoding denial of service, header folding removed
        "python-jose[cryptography]>=3.5",  # CVE-2024-33663, CVE-2024-33664
        "cryptography>=50",  # keys behind python-jose; CVE-2026-69247
        "jsonschema>=4.23",  # draft 2020-12 with the referencing library
        "referencing>=0.35",  # one registry of schemas for both validators
        "jsonschema-rs>=0.60",  # keywords of our own, a registry, Decimal as a number
        "pluggy>=1.5",  # typed markers
        "orjson>=3.11.6",  # Fragment: decimals keep their digits; CVE-2025-67221
        "jsonpatch>=1.47",  # typed; its test operation tells 1 from true
        "pybase64>=1.4",  # strict decoding without the GIL
        "click>=8.4",  # command line; types of parameters name what they make
        "prometheus-client>=0.21",  # the text formats of Prometheus; older ones were not tried
        "structlog>=25.5",  # one line of JSON an event, or of text in columns
        "motor>=3.7",  # MongoDB without blocking; the first that works with PyMongo 4.9 and up
        "pymongo>=4.18.2",  # CVE-2026-96749; its errors show no document that it cannot write
        "aiohttp>=3.14.5",  # webhooks, loads; the first without known holes in its client
        "idna>=3.15",  # hosts of webhooks in ASCII, whatever their length; CVE-2026-45409
        "lxml>=6.1",  # CVE-2026-41066; older ones in the libxml2 of its wheels
    ],
    extras_require={
        "console": [
            "webauthn>=3.0.1",  # passkeys; older ones were not tried
        ],
        "otel": [
            "opentelemetry-sdk>=1.45.2",  # spans; older ones were not tried
            "opentelemetry-exporter-otlp-proto-http>=1.45.2",  # OTLP over HTTP, without gRPC
        ],
        "test": [
            "setuptools>=78.1.1,<81",  # pytest-tornado imports pkg_resources; CVE-2025-47273
            "pytest>=8.3",
            "pytest-asyncio>=1.0",
            "pytest-tornado>=0.8.1",
            "pytest-randomly>=3.16",
            "pytest-xdist>=3.8",  # three processes: tests wait for servers
            "hypothesis>=6.120",
            "ruff>=0.9",
            "mypy>=1.14",
            "types-python-jose",
            "types-jsonschema",
            "lxml-stubs",
            "import-linter>=2.2",
            "build>=1.2",
            "fhirpy>=2.0",  # a FHIR client we did not write
            "fhirclient>=4.3",  # another, which judges by models of its own what it gets
            "authlib>=1.3",  # an OAuth client we did not write
            "joserfc>=1.0",  # forges tokens that python-jose would not write
            "requests-oauthlib>=2.0",  # another OAuth client
            "requests>=2.32",
            "schemathesis>=4.32",  # tries all that our OpenAPI says; two tenants, checks of links
            "openapi-spec-validator>=0.7.2",  # OpenAPI 3.1 is held to draft 2020-12
            "playwright>=1.65",  # drives a browser; older ones were not tried
            "pyyaml>=6.0",  # reads the examples of a guide
            "webauthn>=3.0.1",  # as the extra console
            "opentelemetry-sdk>=1.45.2",  # as the extra otel
            "opentelemetry-exporter-otlp-proto-http>=1.45.2",
            "standardwebhooks>=1.1",  # verifies our signatures, and makes some for us to verify
        ],
        "docs": [
            "mkdocs-material>=9.5",  # the documentation site, with its search
            "mkdocstrings[python]>=0.27",  # the API reference, from docstrings
        ],
    },
    entry_points={
        "console_scripts": ["fhirpub = fhirpub.__main__:main"],
        "fhirpub.plugins.v2": [f"{name.removeprefix('fhirpub_')} = {name}" for name in SHELF],
    },
    classifiers=[
        "Framework :: AsyncIO",
        "Intended Audience :: Healthcare Industry",
        "Programming Language :: Python :: 3.11",
        "Programming Language :: Python :: 3.12",
        "Programming Language :: Python :: 3.13",
        "Topic :: Scientific/Engineering :: Medical Science Apps.",
        "Typing :: Typed",
    ],
)
