// What @medplum/core does with the service, step by step; the facts go out as one JSON object.
import { text } from "node:stream/consumers";
import { MedplumClient } from "@medplum/core";

const given = JSON.parse(await text(process.stdin));
const resourceType = "DiagnosticReport";
const facts = {};

// It has no setting for the audience, which the token endpoint wants to be told.
const tokenUrl = `${given.base}/oauth/token`;
const withAudience = (url, options) =>
  fetch(
    url,
    url === tokenUrl
      ? { ...options, body: `${options.body}&audience=${encodeURIComponent(given.audience)}` }
      : options,
  );
const settings = { baseUrl: given.base, fhirUrlPath: "fhir/r4", tokenUrl, fetch: withAudience };
const refusal = async (call) => {
  try {
    await call();
  } catch (problem) {
    return problem.outcome;
  }
  return "not refused";
};

facts.loggedIn = [];
let medplum;
for (const authCredentialsMethod of ["body", "header"]) {
  medplum = new MedplumClient({ ...settings, authCredentialsMethod });
  await medplum.startClientLogin(given.clientId, given.clientSecret);
  facts.loggedIn.push(medplum.isAuthenticated());
}

const register = (body) => medplum.post(medplum.fhirUrl(resourceType, "$register"), body);
const registered = await register(given.toRegister[0]);
const id = registered.parameter[0].resource.id;
facts.id = id;
for (const body of given.toRegister.slice(1)) await register(body);

const created = await medplum.createResource(given.toCreate);
const [{ system, value }] = given.toCreate.identifier;
const unlessThere = await medplum.createResourceIfNoneExist(given.toCreate, `identifier=${system}|${value}`);
facts.created = [created.id, unlessThere.id];

facts.read = await medplum.readResource(resourceType, id);
facts.patient = await medplum.readReference(facts.read.subject);

const patch = (status, options) =>
  medplum.patchResource(resourceType, id, [{ op: "replace", path: "/status", value: status }], options);
facts.patched = (await patch("amended")) ?? null;
facts.represented = await patch("corrected", { headers: { Prefer: "return=representation", "If-Match": 'W/"2"' } });
facts.stale = await refusal(() => patch("final", { headers: { "If-Match": 'W/"2"' } }));

facts.first = await medplum.readVersion(resourceType, id, "1");
facts.history = await medplum.readHistory(resourceType, id);

const query = { status: "corrected,final", category: "HM", identifier: given.first };
facts.found = (await medplum.searchResources(resourceType, query)).map((each) => each.id);
facts.one = (await medplum.searchOne(resourceType, new URLSearchParams(query))).id;
const [{ url }] = (await medplum.searchOne(resourceType, query)).presentedForm;
facts.document = Buffer.from(await (await medplum.download(url)).arrayBuffer()).toString("base64");

facts.pages = [];
for await (const page of medplum.searchResourcePages(resourceType, { _count: 5, _sort: "-_lastUpdated" })) {
  facts.pages.push(page.map((each) => each.id));
}
facts.unlimited = [];
for await (const page of medplum.searchResourcePages(resourceType)) facts.unlimited.push(page.length);

facts.absent = await refusal(() => medplum.readResource(resourceType, "00000000-0000-4000-8000-000000000000"));
facts.refused = await refusal(() => register(given.toRefuse));

process.stdout.write(JSON.stringify(facts));
