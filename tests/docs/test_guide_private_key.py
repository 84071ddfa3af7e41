"""The guide's section on private keys, followed from the key pair to the token."""

from __future__ import annotations

import json
import shutil
import sys
from dataclasses import replace
from pathlib import Path

import pytest
from joserfc.jwk import ECKey

from fhirpub.auth.clients import NewClient, add_client
from fhirpub.runtime.clock import now_ms
from fhirpub.testing.service import RunningService
from tests.docs.guide import BLOCKS, block, followed, given
from tests.unit.auth.assertions.signing import Pair

pytestmark = pytest.mark.skipif(shutil.which("curl") is None, reason="the guide needs curl")


def test_the_guide_leads_from_a_key_pair_to_tokens(
    service: RunningService, tmp_path: Path
) -> None:
    run = [block("ECKey.generate_key"), BLOCKS[0], block("ECKey.import_key")]
    python = [text.replace("python -", f"{sys.executable} -") for text in run]
    lab = service.integrator()
    followed(python[:1], tmp_path, {})
    new = NewClient(
        tenant=lab.tenant.id,
        name="ward",
        environment="sandbox",
        scopes=("system/DiagnosticReport.rs",),
        jwks=(tmp_path / "public.jwks.json").read_text(),
    )
    client, _secret = service.call(add_client(service.services.store, new, clock=now_ms))
    known = given(replace(lab, client_id=client.id))

    printed = followed(python[1:], tmp_path, known)

    assert printed == "300 system/DiagnosticReport.rs\n"
    key = ECKey.import_key(json.loads((tmp_path / "private.jwk.json").read_text()))
    signed = Pair(key, "ES384").sign(
        {
            "iss": client.id,
            "sub": client.id,
            "aud": f"{service.base_url}/oauth/token",
            "exp": now_ms() // 1000 + 300,
            "jti": "from-the-guide",
        }
    )
    assertion = f"ASSERTION='{signed}'\n"
    answer = followed([BLOCKS[0], assertion + block("$ASSERTION")], tmp_path, known)
    assert json.loads(answer)["scope"] == "system/DiagnosticReport.rs"
