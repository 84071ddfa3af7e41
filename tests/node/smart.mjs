// SMART Backend Services with @medplum/core: an assertion signed with ES384 gets the token.
import { createPrivateKey, randomUUID, sign } from "node:crypto";
import { text } from "node:stream/consumers";
import { MedplumClient } from "@medplum/core";

const given = JSON.parse(await text(process.stdin));
const discovered = await (await fetch(`${given.base}/fhir/r4/.well-known/smart-configuration`)).json();
const tokenUrl = discovered.token_endpoint;

const encode = (value) => Buffer.from(JSON.stringify(value)).toString("base64url");
const now = Math.floor(Date.now() / 1000);
const head = encode({ alg: "ES384", typ: "JWT", kid: given.privateKey.kid });
const claims = encode({ iss: given.clientId, sub: given.clientId, aud: tokenUrl, exp: now + 300, jti: randomUUID() });
const key = createPrivateKey({ key: given.privateKey, format: "jwk" });
const signature = sign("sha384", Buffer.from(`${head}.${claims}`), { key, dsaEncoding: "ieee-p1363" });
const assertion = `${head}.${claims}.${signature.toString("base64url")}`;

const medplum = new MedplumClient({ baseUrl: given.base, fhirUrlPath: "fhir/r4", tokenUrl, fetch });
const facts = { capabilities: discovered.capabilities };
await medplum.startJwtAssertionLogin(assertion);
facts.loggedIn = medplum.isAuthenticated(0); // by default it wants a token that outlasts five minutes
const registered = await medplum.post(medplum.fhirUrl("DiagnosticReport", "$register"), given.toRegister);
facts.read = await medplum.readResource("DiagnosticReport", registered.parameter[0].resource.id);
try {
  await medplum.startJwtAssertionLogin(assertion);
} catch (problem) {
  facts.again = String(problem);
}

process.stdout.write(JSON.stringify(facts));
