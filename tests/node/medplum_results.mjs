// What @medplum/core does with a report and its results; the facts go out as one JSON object.
import { text } from "node:stream/consumers";
import { MedplumClient } from "@medplum/core";

const given = JSON.parse(await text(process.stdin));
const settings = { baseUrl: given.base, fhirUrlPath: "fhir/r4" };
const medplum = new MedplumClient({ ...settings, accessToken: given.token });
const facts = {};
const refusal = async (call) => {
  try {
    await call();
  } catch (problem) {
    return problem.outcome;
  }
  return "not refused";
};

const registered = await medplum.post(medplum.fhirUrl("DiagnosticReport", "$register"), given.panel);
const { id } = registered.parameter[0].resource;

// A reader who knows only the patient's identifier.
const query = [
  ["patient.identifier", given.patient],
  ["_include", "DiagnosticReport:result"],
  ["_include", "DiagnosticReport:specimen"],
];
const bundle = await medplum.search("DiagnosticReport", query);
facts.found = bundle.entry.map(({ resource, search }) => [resource.resourceType, search.mode]).sort();
const report = bundle.entry.find((entry) => entry.search.mode === "match").resource;
const results = await Promise.all(report.result.map((each) => medplum.readReference(each)));
facts.results = results.map((each) => each.code.text);
facts.specimen = (await medplum.readReference(results[0].specimen)).type.text;

const subject = report.subject.reference;
const low = { subject, "value-quantity": "lt50", _revinclude: "DiagnosticReport:result" };
facts.low = (await medplum.search("Observation", low)).entry.map(({ resource }) => resource.code.text).sort();

// The laboratory corrects one of them.
const address = medplum.fhirUrl("DiagnosticReport", id, "$revise");
const revise = (body, headers) => medplum.post(address, body, undefined, { headers });
facts.unconditional = await refusal(() => revise(given.revision, {}));
const etag = `W/"${report.meta.versionId}"`;
const revised = await revise(given.revision, { "If-Match": etag });
facts.changed = revised.parameter.filter((each) => each.valueReference).map((each) => each.name);
const again = await revise(given.revision, { "If-Match": etag });
facts.again = again.parameter[0].resource.meta.versionId;
facts.stale = await refusal(() => revise(given.other, { "If-Match": etag }));

const corrected = results.find((each) => each.code.text === "plt");
facts.values = (await medplum.readHistory("Observation", corrected.id)).entry.map(
  ({ resource }) => resource.valueQuantity.value,
);
facts.first = (await medplum.readVersion("Observation", corrected.id, "1")).valueQuantity.value;
facts.requests = (await medplum.readHistory("DiagnosticReport", id)).entry.map(({ request }) => request.method);

process.stdout.write(JSON.stringify(facts));
