// What a client made by openapi-typescript does with the service; returns the facts.
import createClient from "openapi-fetch";
import type { components, paths } from "./fhirpub.js";

type Report = components["schemas"]["DiagnosticReport"];
interface Given {
  base: string;
  audience: string;
  clientId: string;
  clientSecret: string;
  identifier: string;
  toRegister: components["schemas"]["RegisterDiagnosticReport"];
  toRepeat: components["schemas"]["RegisterDiagnosticReport"];
  toRefuse: components["schemas"]["RegisterDiagnosticReport"];
  toCreate: Report;
}

function must<T>(value: T | undefined): T {
  if (value === undefined) throw new Error("nothing was returned");
  return value;
}

export async function publish(given: Given) {
  const client = createClient<paths>({ baseUrl: given.base });
  const credentials = {
    grant_type: "client_credentials",
    audience: given.audience,
    client_id: given.clientId,
    client_secret: given.clientSecret,
  } as const;
  const headers = { "Content-Type": "application/x-www-form-urlencoded" };
  const granted = await client.POST("/oauth/token", { body: credentials, headers });
  const unknown = await client.POST("/oauth/token", {
    body: { ...credentials, client_secret: "wrong" },
    headers,
  });
  client.use({
    onRequest({ request }) {
      request.headers.set("Authorization", `Bearer ${must(granted.data).access_token}`);
    },
  });
  const json = { "Content-Type": "application/fhir+json" };

  const registered = await client.POST("/fhir/r4/DiagnosticReport/$register", {
    body: given.toRegister,
    headers: json,
  });
  const answer = must(registered.data);
  if (answer.resourceType !== "Parameters") throw new Error(answer.resourceType);
  const entry = answer.parameter[0];
  if (entry?.name !== "diagnosticReport") throw new Error(entry?.name);
  const id: string = must(entry.resource.id);

  const repeated = await client.POST("/fhir/r4/DiagnosticReport/$register", {
    body: given.toRepeat,
    headers: json,
  });

  const params = { path: { id } };
  const read = await client.GET("/fhir/r4/DiagnosticReport/{id}", { params });

  const found = await client.GET("/fhir/r4/DiagnosticReport", {
    params: { query: { identifier: given.identifier } },
  });
  const resource = must(must(found.data).entry?.[0]?.resource);
  if (resource.resourceType !== "DiagnosticReport") throw new Error(resource.resourceType);

  const tried = await client.POST("/fhir/r4/DiagnosticReport/$validate", {
    body: given.toRegister,
    headers: json,
  });

  const patched = await client.PATCH("/fhir/r4/DiagnosticReport/{id}", {
    params: { ...params, header: { "If-Match": 'W/"1"', Prefer: "return=representation" } },
    body: { resourceType: "DiagnosticReport", status: "amended" },
    headers: json,
  });
  const amended = must(patched.data);
  if (amended.resourceType !== "DiagnosticReport") throw new Error(amended.resourceType);

  const created = await client.POST("/fhir/r4/DiagnosticReport", {
    params: { header: { Prefer: "return=representation" } },
    body: given.toCreate,
    headers: json,
  });
  const made = must(created.data);
  if (made.resourceType !== "DiagnosticReport") throw new Error(made.resourceType);

  const refused = await client.POST("/fhir/r4/DiagnosticReport/$register", {
    body: given.toRefuse,
    headers: json,
  });

  return {
    registered: id,
    repeated: repeated.response.headers.get("Idempotent-Content"),
    conclusion: must(read.data).conclusion,
    found: resource.id,
    tried: must(tried.data).issue.map((issue) => issue.severity),
    patched: [amended.status, amended.meta?.versionId],
    created: made.resourceType,
    refused: must(refused.error).issue.map((issue) => issue.expression),
    unauthorized: must(unknown.error).error,
  };
}
