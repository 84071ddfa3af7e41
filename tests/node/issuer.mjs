// An OpenID Connect issuer, oidc-provider, with a client that gets JWT access tokens.
import { generateKeyPairSync } from "node:crypto";
import { createServer } from "node:http";
import { text } from "node:stream/consumers";
import Provider from "oidc-provider";

const given = JSON.parse(await text(process.stdin));
const keys = ["RS256", "ES256"].map((alg) => {
  const pair =
    alg === "RS256"
      ? generateKeyPairSync("rsa", { modulusLength: 2048 })
      : generateKeyPairSync("ec", { namedCurve: "P-256" });
  return { ...pair.privateKey.export({ format: "jwk" }), kid: `key-${alg}`, alg, use: "sig" };
});
const server = createServer();
await new Promise((done) => server.listen(given.port ?? 0, "127.0.0.1", done));
const issuer = `http://127.0.0.1:${server.address().port}`;
const provider = new Provider(issuer, {
  jwks: { keys },
  scopes: given.scopes,
  clients: given.clients.map((one) => ({
    grant_types: ["client_credentials"],
    redirect_uris: [],
    response_types: [],
    ...one,
  })),
  features: {
    clientCredentials: { enabled: true },
    devInteractions: { enabled: false },
    resourceIndicators: {
      enabled: true,
      getResourceServerInfo: async (_context, resource) => ({
        scope: given.scopes.join(" "),
        audience: resource,
        accessTokenFormat: "jwt",
        accessTokenTTL: 600,
        jwt: { sign: { alg: given.algorithm } },
      }),
    },
  },
});
server.on("request", provider.callback());
process.stdout.write(`${issuer}\n`);
