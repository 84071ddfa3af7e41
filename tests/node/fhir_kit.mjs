// What fhir-kit-client does with the service, step by step; the facts go out as one JSON object.
import { text } from "node:stream/consumers";
import { CapabilityTool, Client } from "fhir-kit-client";

const given = JSON.parse(await text(process.stdin));
const resourceType = "DiagnosticReport";
const facts = {};

const client = new Client({ baseUrl: `${given.base}/fhir/r4` });
const statusOf = (answer) => Client.httpFor(answer).response.status;
const headerOf = (answer, name) => Client.httpFor(answer).response.headers.get(name);
const refusal = async (call) => {
  try {
    await call();
  } catch (problem) {
    return problem.response;
  }
  return "not refused";
};

// Before it has a token: the statement, which does not hold the address, must not arrive first.
const { tokenUrl } = await client.smartAuthMetadata();
const granted = await fetch(tokenUrl, {
  method: "POST",
  body: new URLSearchParams({
    grant_type: "client_credentials",
    audience: given.audience,
    client_id: given.clientId,
    client_secret: given.clientSecret,
  }),
});
client.bearerToken = (await granted.json()).access_token;

facts.offered = new CapabilityTool(await client.capabilityStatement()).interactionsFor({ resourceType });

const register = (input) => client.operation({ name: "register", resourceType, input });
const registered = await register(given.toRegister[0]);
const id = registered.parameter[0].resource.id;
facts.registered = { status: statusOf(registered), location: headerOf(registered, "location"), id };
facts.again = JSON.stringify(await register(given.toRegister[0])) === JSON.stringify(registered);
for (const input of given.toRegister.slice(1)) await register(input);

const created = await client.create({ resourceType, body: given.toCreate });
const token = given.toCreate.identifier.map(({ system, value }) => `${system}|${value}`)[0];
const unlessThere = await client.create({
  resourceType,
  body: given.toCreate,
  options: { headers: { "If-None-Exist": `identifier=${token}` } },
});
facts.created = [created, unlessThere].map((each) => ({ status: statusOf(each), id: each.id }));

facts.read = await client.read({ resourceType, id });
facts.patient = await client.resolve({ reference: facts.read.subject.reference });

const jsonPatch = [
  { op: "test", path: "/status", value: "final" },
  { op: "replace", path: "/status", value: "amended" },
  { op: "add", path: "/conclusion", value: "otherwise" },
];
const patch = (version) =>
  client.patch({ resourceType, id, jsonPatch, options: { headers: { "If-Match": `W/"${version}"` } } });
facts.patched = statusOf(await patch(1));
facts.stale = await refusal(() => patch(1));

facts.first = await client.vread({ resourceType, id, version: "1" });
facts.latest = await client.read({ resourceType, id });
facts.history = await client.history({ resourceType, id });

const searchParams = { status: ["amended", "final"].join(","), category: "HM", identifier: given.first };
const found = await client.search({ resourceType, searchParams });
const posted = await client.search({ resourceType, searchParams, options: { postSearch: true } });
facts.found = [found, posted].map((bundle) => bundle.entry.map((each) => each.resource.id));

facts.pages = [];
for (
  let page = await client.search({ resourceType, searchParams: { _count: 5, _sort: "-_lastUpdated" } });
  page !== undefined;
  page = await client.nextPage({ bundle: page })
) {
  facts.pages.push(page.entry.map((each) => each.resource.id));
}

facts.absent = await refusal(() => client.read({ resourceType, id: "00000000-0000-4000-8000-000000000000" }));
facts.refused = await refusal(() => register(given.toRefuse));

process.stdout.write(JSON.stringify(facts));
