"""Verifies a token of ours with PyJWT as an application would, and makes with it what we must refuse.

Standard input and output are as those of jose.mjs; PYTHONPATH holds PyJWT.
"""

import base64
import hashlib
import hmac
import json
import sys
import time

import jwt
from cryptography.hazmat.primitives.asymmetric import ec, ed448, ed25519, rsa
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat
from jwt.algorithms import OKPAlgorithm

given = json.load(sys.stdin)
issuer, audience, token = given["issuer"], given["audience"], given["token"]

client = jwt.PyJWKClient(given["jwks"])
key = client.get_signing_key_from_jwt(token)
required = {"require": ["iss", "aud", "sub", "iat", "nbf", "exp"]}


def verify(text, algorithms=("EdDSA",), issuer=issuer, audience=audience):
    return jwt.decode(
        text, key.key, algorithms=list(algorithms), issuer=issuer, audience=audience, options=required
    )


claims = verify(token)
header = jwt.get_unverified_header(token)


def refuses(what, text, **changed):
    try:
        verify(text, **changed)
    except jwt.PyJWTError:
        return
    raise SystemExit(f"PyJWT takes {what}")


refuses("another issuer", token, issuer="another")
refuses("another audience", token, audience="another")
refuses("a cut token", token[:-2])

jwk = next(jwk for jwk in client.fetch_data()["keys"] if jwk["kid"] == header["kid"])
ours = OKPAlgorithm.from_jwk(json.dumps({**jwk, "d": given["d"]}))
theirs = ed25519.Ed25519PrivateKey.generate()
their_jwk = json.loads(OKPAlgorithm.to_jwk(theirs.public_key()))
public = key.key
raw = public.public_bytes(Encoding.Raw, PublicFormat.Raw)
now = int(time.time())
forgeries = []


def encode(data):
    data = data if isinstance(data, bytes) else json.dumps(data, separators=(",", ":")).encode()
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


def sign(payload, key, algorithm="EdDSA", **head):
    headers = {name: value for name, value in {**header, **head}.items() if name != "alg"}
    return jwt.encode(payload, key, algorithm=algorithm, headers=headers, sort_headers=True)


def add(name, text):
    forgeries.append([name, text])


# Right in everything: it is taken, so what follows is refused for the one thing in which it differs.
control = sign(claims, ours)

# PyJWT refuses a public key as an HMAC secret where it knows one, so the macs are made by hand.
pem = public.public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)
for name, secret in {
    "raw bytes": raw,
    "x": jwk["x"].encode(),
    "hex": raw.hex().encode(),
    "PEM": pem,
    "PEM without its newline": pem.rstrip(),
    "DER": public.public_bytes(Encoding.DER, PublicFormat.SubjectPublicKeyInfo),
    "OpenSSH": public.public_bytes(Encoding.OpenSSH, PublicFormat.OpenSSH),
    "JWK": json.dumps(jwk).encode(),
}.items():
    for digest in ["sha256", "sha384", "sha512"]:
        algorithm = "HS" + digest[3:]
        for alg in [algorithm, "EdDSA"]:
            signed = f"{encode({**header, 'alg': alg})}.{encode(claims)}"
            mac = hmac.new(secret, signed.encode(), getattr(hashlib, digest)).digest()
            add(f"{algorithm} called {alg} under our public key as {name}", f"{signed}.{encode(mac)}")
add("HS256 of PyJWT itself", sign(claims, raw, "HS256"))
add("no algorithm", sign(claims, None, "none"))
for alg in ["none", "None", "NONE", "", None, 1]:
    add(f"alg {alg!r}", f"{encode({**header, 'alg': alg})}.{encode(claims)}.{token.split('.')[2]}")

add("a key of theirs", sign(claims, theirs))
add("a key of theirs, their kid", sign(claims, theirs, kid="theirs"))
add("our key, their kid", sign(claims, ours, kid="theirs"))
for name in ["jwk", "jku", "x5u"]:
    value = their_jwk if name == "jwk" else given["jwks"]
    add(f"{name} and a key of theirs", sign(claims, theirs, **{name: value}))
    add(f"{name} and our key", sign(claims, ours, **{name: value}))
add("crit", sign(claims, ours, crit=["exp"]))
add("detached", jwt.api_jws.encode(json.dumps(claims).encode(), ours, "EdDSA", header, is_payload_detached=True))
add("ES256", sign(claims, ec.generate_private_key(ec.SECP256R1()), "ES256"))
add("RS256", sign(claims, rsa.generate_private_key(65537, 2048), "RS256"))
add("Ed448", sign(claims, ed448.Ed448PrivateKey.generate()))

for name, changed in {
    "expired": {"iat": now - 7200, "nbf": now - 7200, "exp": now - 3600},
    "not yet valid": {"nbf": now + 600},
    "issued in the future": {"iat": now + 600, "nbf": now, "exp": now + 1200},
    "lives too long": {"exp": claims["iat"] + 3601},
    "another issuer": {"iss": "another"},
    "another audience": {"aud": "another"},
    "a list of audiences": {"aud": [audience]},
    "another tenant": {"tenant": "spa"},
    "another subject": {"sub": "01k9zv5n2m8q4r6t0w3y7b1d5f"},
}.items():
    add(f"{name}, by our key", sign({**claims, **changed}, ours))
    add(f"{name}, by a key of theirs", sign({**claims, **changed}, theirs))
for claim in ["iss", "aud", "sub", "sid", "tenant", "iat", "nbf", "exp"]:
    rest = {name: value for name, value in claims.items() if name != claim}
    add(f"without {claim}, by our key", sign(rest, ours))
head, _, signature = token.split(".")
for claim, value in {"sub": "x", "tenant": "spa", "exp": claims["exp"] + 1, "role": "admin"}.items():
    add(f"edited {claim}", f"{head}.{encode({**claims, claim: value})}.{signature}")

print(json.dumps({"claims": claims, "header": header, "control": control, "forgeries": forgeries}))
