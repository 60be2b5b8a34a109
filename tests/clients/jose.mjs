// Verifies a token of ours with jose as an application would, and makes with it what we must refuse.
//
// Standard input: {"packages", "jwks", "issuer", "audience", "token", "d"}, where d is our private key, so that a
// forgery can be right in everything but one. Standard output: {"claims", "header", "forgeries": [[name, token]]}.

import { createRequire } from "node:module";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { deflateRawSync } from "node:zlib";

const given = JSON.parse(readFileSync(0, "utf8"));
const jose = await import(pathToFileURL(createRequire(join(given.packages, "node_modules/x.js")).resolve("jose")));
const { issuer, audience, token } = given;

const options = { issuer, audience, algorithms: ["EdDSA"], typ: "JWT", requiredClaims: ["sub", "sid", "tenant"] };
const keys = jose.createRemoteJWKSet(new URL(given.jwks));
const { payload: claims, protectedHeader: header } = await jose.jwtVerify(token, keys, options);

// What the client itself refuses: it looks at what we say it looks at.
async function refuses(what, text, changed = {}) {
  try {
    await jose.jwtVerify(text, keys, { ...options, ...changed });
  } catch {
    return;
  }
  throw new Error(`jose takes ${what}`);
}
await refuses("another issuer", token, { issuer: "another" });
await refuses("another audience", token, { audience: "another" });
await refuses("another algorithm", token, { algorithms: ["HS256"] });
await refuses("a cut token", token.slice(0, -2));

const jwks = await (await fetch(given.jwks)).text();
const jwk = JSON.parse(jwks).keys.find((key) => key.kid === header.kid);
const publicKey = await jose.importJWK(jwk, "EdDSA");
const ours = await jose.importJWK({ ...jwk, d: given.d, use: undefined }, "EdDSA");
const { privateKey: theirs, publicKey: theirPublic } = await jose.generateKeyPair("EdDSA", { extractable: true });
const theirJwk = await jose.exportJWK(theirPublic);
const now = Math.floor(Date.now() / 1000);
const utf8 = new TextEncoder();
const base64url = (value) => jose.base64url.encode(typeof value === "string" ? value : JSON.stringify(value));

const forgeries = [];
const add = (name, text) => forgeries.push([name, text]);
const sign = (payload, head, key, more) =>
  new jose.SignJWT(payload).setProtectedHeader(head).sign(key, more);

// Right in everything: it is taken, so what follows is refused for the one thing in which it differs.
const control = await sign(claims, header, ours);

const spki = await jose.exportSPKI(publicKey);
const raw = jose.base64url.decode(jwk.x);
const encodings = {
  "raw bytes": raw,
  "x": utf8.encode(jwk.x),
  "base64": utf8.encode(Buffer.from(raw).toString("base64")),
  "hex": utf8.encode(Buffer.from(raw).toString("hex")),
  "PEM": utf8.encode(spki),
  "PEM and a newline": utf8.encode(spki + "\n"),
  "DER": Buffer.from(spki.split("\n").slice(1, -1).join(""), "base64"),
  "JWK": utf8.encode(JSON.stringify(jwk)),
  "JWKS": utf8.encode(jwks),
};
for (const alg of ["HS256", "HS384", "HS512"]) {
  for (const [name, bytes] of Object.entries(encodings)) {
    const secret = await crypto.subtle.importKey(
      "raw", bytes, { name: "HMAC", hash: `SHA-${alg.slice(2)}` }, false, ["sign"]);
    for (const head of [{ ...header, alg }, { alg }]) {
      const signed = `${base64url(head)}.${base64url(claims)}`;
      const mac = new Uint8Array(await crypto.subtle.sign("HMAC", secret, utf8.encode(signed)));
      add(`${alg} under our public key as ${name}, header ${Object.keys(head)}`, `${signed}.${jose.base64url.encode(mac)}`);
    }
  }
}
add("HS256 of jose itself", await sign(claims, { ...header, alg: "HS256" }, utf8.encode(spki)));
add("no algorithm", new jose.UnsecuredJWT(claims).encode());

add("a key of theirs", await sign(claims, header, theirs));
for (const kid of ["1", "", `${header.kid}x`, await jose.calculateJwkThumbprint(theirJwk)]) {
  add(`a key of theirs with kid ${kid}`, await sign(claims, { ...header, kid }, theirs));
  add(`our key with kid ${kid}`, await sign(claims, { ...header, kid }, ours));
}
add("no kid", await sign(claims, { alg: header.alg, typ: header.typ }, ours));
for (const [name, extra] of Object.entries({
  jwk: { jwk: theirJwk },
  jku: { jku: given.jwks },
  x5u: { x5u: given.jwks },
  x5c: { x5c: [Buffer.from(raw).toString("base64")] },
  "typ at+jwt": { typ: "at+jwt" },
  cty: { cty: "JWT" },
  zip: { zip: "DEF" },
})) {
  add(`${name} and a key of theirs`, await sign(claims, { ...header, ...extra }, theirs));
  add(`${name} and our key`, await sign(claims, { ...header, ...extra }, ours));
}
const crit = { crit: { "urn:rowgate:x": true } };
add("crit", await sign(claims, { ...header, "urn:rowgate:x": 1, crit: ["urn:rowgate:x"] }, ours, crit));
add("b64", await sign(claims, { ...header, b64: true, crit: ["b64"] }, ours));
for (const alg of ["ES256", "RS256", "PS256"]) {
  const { privateKey } = await jose.generateKeyPair(alg);
  add(`${alg} of theirs`, await sign(claims, { ...header, alg }, privateKey));
}

for (const [name, changed] of Object.entries({
  expired: { iat: now - 7200, nbf: now - 7200, exp: now - 3600 },
  "not yet valid": { nbf: now + 600 },
  "issued in the future": { iat: now + 600, nbf: now, exp: now + 1200 },
  "lives for ever": { exp: now + 100 * 365 * 86400 },
  "lives a second too long": { exp: claims.iat + 3601 },
  "another issuer": { iss: "https://another.example" },
  "another audience": { aud: "another" },
  "two audiences": { aud: [audience, "another"] },
  "no expiry": { exp: undefined },
  "no issuer": { iss: undefined },
  "no audience": { aud: undefined },
  "no subject": { sub: undefined },
  "no secret": { sid: undefined },
  "no tenant": { tenant: undefined },
  "another tenant": { tenant: "spa" },
  "a tenant that is a list": { tenant: [claims.tenant] },
  "another subject": { sub: "01k9zv5n2m8q4r6t0w3y7b1d5f" },
  "another secret": { sid: "01k9zv5n2m8q4r6t0w3y7b1d5f" },
  "times as text": { exp: String(claims.exp) },
  "a time with a fraction": { exp: claims.exp - 0.5 },
  "a negative time": { iat: -1, nbf: -1, exp: -1 },
})) {
  const text = await new jose.CompactSign(utf8.encode(JSON.stringify({ ...claims, ...changed })))
    .setProtectedHeader(header).sign(ours);
  add(`${name}, by our key`, text);
}
// Claims that are no object, and claims twice.
for (const body of ["", "null", "[]", `"${claims.sub}"`, JSON.stringify([claims]), "{", "\u0000",
  JSON.stringify(claims).replace("{", `{"exp":${claims.exp},`)]) {
  const text = await new jose.CompactSign(utf8.encode(body)).setProtectedHeader(header).sign(ours);
  add(`claims ${JSON.stringify(body.slice(0, 20))}, by our key`, text);
}
const zipped = deflateRawSync(JSON.stringify(claims));
add("zipped claims, by our key",
  await new jose.CompactSign(zipped).setProtectedHeader({ ...header, zip: "DEF" }).sign(ours));

const [head, , signature] = token.split(".");
for (const [claim, value] of Object.entries({ sub: "x", tenant: "spa", exp: claims.exp + 1, role: "admin" })) {
  add(`edited ${claim}`, `${head}.${base64url({ ...claims, [claim]: value })}.${signature}`);
}
// The other serializations (RFC 7515, section 7.2), one signature and two.
const body = utf8.encode(JSON.stringify(claims));
const general = new jose.GeneralSign(body).addSignature(theirs).setProtectedHeader(header)
  .addSignature(ours).setProtectedHeader(header);
add("two signatures", JSON.stringify(await general.sign()));
const flat = await new jose.FlattenedSign(body).setProtectedHeader(header).sign(ours);
add("flattened", JSON.stringify(flat));
add("flattened, encoded", base64url(flat));
add("a second signature", `${token}.${signature}`);
add("a token in a token", await new jose.CompactSign(utf8.encode(token)).setProtectedHeader(header).sign(ours));
const encrypted = new jose.EncryptJWT(claims).setProtectedHeader({ alg: "dir", enc: "A256GCM" });
add("encrypted under our public key", await encrypted.encrypt(raw));

console.log(JSON.stringify({ claims, header, control, forgeries }));
