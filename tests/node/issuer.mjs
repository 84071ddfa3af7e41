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
  scopes: given.people ? ["openid"] : given.scopes,
  claims: { email: ["email", "email_verified"], profile: ["name"] },
  findAccount: (_context, id) => ({
    accountId: id,
    claims: () => ({ sub: id, name: id, email: id, email_verified: !id.startsWith("unverified") }),
  }),
  clients: given.clients.map((one) => ({
    grant_types: [given.people ? "authorization_code" : "client_credentials"],
    redirect_uris: [],
    response_types: given.people ? ["code"] : [],
    ...one,
  })),
  features: {
    clientCredentials: { enabled: true },
    // For people there is a page that accepts every name and every password.
    devInteractions: { enabled: Boolean(given.people) },
    resourceIndicators: {
      enabled: !given.people,
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
