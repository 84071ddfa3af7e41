"""What a client made by openapi-python-client does with the service; prints the facts as JSON."""

from __future__ import annotations

import json
import sys

from generated_client import AuthenticatedClient, Client
from generated_client.api.authorization import token
from generated_client.api.diagnostic_report import (
    create_diagnostic_report,
    read_diagnostic_report,
    register_diagnostic_report,
    search_diagnostic_report,
    update_diagnostic_report,
    validate_diagnostic_report,
)
from generated_client.models import (
    DiagnosticReport,
    OAuthError,
    OperationOutcome,
    RegisterDiagnosticReport,
    RegisteredDiagnosticReport,
    RegisteredDiagnosticReportDiagnosticReport,
    Token,
    TokenRequest,
    UpdateDiagnosticReport,
    UpdateDiagnosticReportStatus,
)

given = json.load(sys.stdin)
request = TokenRequest(
    grant_type="client_credentials",
    audience=given["audience"],
    client_id=given["clientId"],
    client_secret=given["clientSecret"],
)
granted = token.sync(client=Client(base_url=given["base"]), body=request)
assert isinstance(granted, Token)
request.client_secret = "wrong"
unknown = token.sync(client=Client(base_url=given["base"]), body=request)
assert isinstance(unknown, OAuthError)
client = AuthenticatedClient(base_url=given["base"], token=granted.access_token)

body = RegisterDiagnosticReport.from_dict(given["toRegister"])
registered = register_diagnostic_report.sync(client=client, body=body)
assert isinstance(registered, RegisteredDiagnosticReport)
entry = registered.parameter[0]
assert isinstance(entry, RegisteredDiagnosticReportDiagnosticReport)
report_id = entry.resource.id
assert isinstance(report_id, str)

repeated = register_diagnostic_report.sync_detailed(
    client=client, body=RegisterDiagnosticReport.from_dict(given["toRepeat"])
)

read = read_diagnostic_report.sync(report_id, client=client)
assert isinstance(read, DiagnosticReport)

found = search_diagnostic_report.sync(client=client, identifier=given["identifier"])
assert found
assert not isinstance(found, OperationOutcome)
assert isinstance(found.entry, list)
(report,) = [item.resource for item in found.entry]
assert isinstance(report, DiagnosticReport)

tried = validate_diagnostic_report.sync(client=client, body=body)
assert isinstance(tried, OperationOutcome)

change = UpdateDiagnosticReport(
    resource_type="DiagnosticReport", status=UpdateDiagnosticReportStatus.AMENDED
)
patched = update_diagnostic_report.sync(
    report_id, client=client, body=change, if_match='W/"1"', prefer="return=representation"
)
assert isinstance(patched, DiagnosticReport)
assert patched.meta

created = create_diagnostic_report.sync(
    client=client,
    body=DiagnosticReport.from_dict(given["toCreate"]),
    prefer="return=representation",
)
assert isinstance(created, DiagnosticReport)

refused = register_diagnostic_report.sync(
    client=client, body=RegisterDiagnosticReport.from_dict(given["toRefuse"])
)
assert isinstance(refused, OperationOutcome)

facts = {
    "registered": report_id,
    "repeated": repeated.headers["Idempotent-Content"],
    "conclusion": read.conclusion,
    "found": report.id,
    "tried": [issue.severity for issue in tried.issue],
    "patched": [patched.status, patched.meta.version_id],
    "created": created.resource_type,
    "refused": [issue.expression for issue in refused.issue],
    "unauthorized": unknown.error,
}
sys.stdout.write(json.dumps(facts))
