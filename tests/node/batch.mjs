// Sends one batch with a client, and prints the response.
import { text } from "node:stream/consumers";
import { MedplumClient } from "@medplum/core";
import { Client } from "fhir-kit-client";

const given = JSON.parse(await text(process.stdin));

const byFhirKit = () =>
  new Client({ baseUrl: `${given.base}/fhir/r4`, bearerToken: given.token }).batch({ body: given.batch });
const byMedplum = () => {
  const medplum = new MedplumClient({ baseUrl: given.base, fhirUrlPath: "fhir/r4", fetch });
  medplum.setAccessToken(given.token);
  return medplum.executeBatch(given.batch);
};

const answer = await (given.client === "@medplum/core" ? byMedplum : byFhirKit)();
process.stdout.write(JSON.stringify(answer));
