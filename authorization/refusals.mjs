// Tokens and proofs that must not be taken, made with the provider's own key where that makes them harder to tell.
import assert from 'node:assert/strict';
import { SignJWT, UnsecuredJWT, calculateJwkThumbprint, exportJWK, exportSPKI, generateKeyPair } from 'jose';
import { createHash, randomUUID } from 'node:crypto';
import { check } from './checks.mjs';
import { bearer, call } from './request.mjs';

const now = () => Math.floor(Date.now() / 1000);

export async function refusals({ signed: { url, provider } }) {
  const claims = (more = {}) => ({
    iss: provider.issuer,
    aud: url,
    sub: 'alice',
    client_id: 'forger',
    scope: 'notes:read notes:write',
    iat: now(),
    exp: now() + 60,
    jti: randomUUID(),
    ...more,
  });
  const whoami = (headers) => call(url, 'whoami', { headers });
  const refused = (name, make) =>
    check(`${name} is refused`, async () => {
      const told = await whoami(bearer(await make()));
      assert.equal(told.status, 401, JSON.stringify(told));
      assert.match(told.challenge, /error="invalid_token"/);
    });

  await check('a token that the provider could have signed is taken', async () => {
    const told = await whoami(bearer(await provider.sign(claims())));
    assert.equal(told.text, 'alice: notes:read notes:write', JSON.stringify(told));
  });
  // More than the leeway of a minute.
  await refused('an expired token', () => provider.sign(claims({ iat: now() - 120, exp: now() - 62 })));
  await refused('a token without an expiry', () => provider.sign(claims({ exp: undefined })));
  await refused('a token that is not valid yet', () => provider.sign(claims({ nbf: now() + 120 })));
  for (const aud of [`${url}/`, url.replace('/mcp', ''), url.toUpperCase(), 'https://other.example/mcp', [`${url}2`]]) {
    await refused(`a token for ${aud}`, () => provider.sign(claims({ aud })));
  }
  await refused('a token of another issuer', () => provider.sign(claims({ iss: 'http://127.0.0.1:1' })));
  await refused('a token of the issuer with a slash', () => provider.sign(claims({ iss: `${provider.issuer}/` })));
  await refused('a token without a signature', async () => new UnsecuredJWT(claims()).encode());
  await refused('a token signed with the public key as a secret', () => withHmac(provider, claims()));
  await refused('a token of a key that nobody knows', async () => {
    const { privateKey } = await generateKeyPair('ES256');
    return new SignJWT(claims()).setProtectedHeader({ alg: 'ES256', typ: 'at+jwt', kid: 'es' }).sign(privateKey);
  });
  await refused('a token with its own key in the header', async () => {
    const { privateKey, publicKey } = await generateKeyPair('ES256', { extractable: true });
    const header = { alg: 'ES256', typ: 'at+jwt', jwk: await exportJWK(publicKey) };
    return new SignJWT(claims()).setProtectedHeader(header).sign(privateKey);
  });
  await refused('an ID token', () => provider.sign(claims({ at_hash: 'x' }), { typ: 'JWT' }));
  await requests({ url, whoami, token: () => provider.sign(claims()) });
  await proofs({ url, whoami, sign: (more) => provider.sign(claims(more)) });
}

async function withHmac(provider, claims) {
  const secret = new TextEncoder().encode(await exportSPKI(provider.publicKey));
  return new SignJWT(claims).setProtectedHeader({ alg: 'HS256', typ: 'at+jwt', kid: 'es' }).sign(secret);
}

async function requests({ url, whoami, token }) {
  await check('a request without a token is told where to log in', async () => {
    const told = await whoami({});
    assert.equal(told.status, 401);
    assert.match(told.challenge, /resource_metadata="http:.*oauth-protected-resource\/mcp"/);
    assert.doesNotMatch(told.challenge, /error=/);
  });
  await check('a token in the query is refused, and not read', async () => {
    const told = await call(`${url}?access_token=${await token()}`, 'whoami');
    assert.equal(told.status, 400, JSON.stringify(told));
  });
  await check('a token in a cookie is none', async () => {
    assert.equal((await whoami({ cookie: `access_token=${await token()}` })).status, 401);
  });
  await check('two tokens are refused', async () => {
    const headers = { authorization: `Bearer ${await token()}, Bearer ${await token()}` };
    const told = await whoami(headers);
    assert.ok([400, 401].includes(told.status), JSON.stringify(told));
  });
}

async function proofs({ url, whoami, sign }) {
  const { privateKey, publicKey } = await generateKeyPair('ES256', { extractable: true });
  const jwk = await exportJWK(publicKey);
  const token = await sign({ cnf: { jkt: await calculateJwkThumbprint(jwk) } });
  const ath = createHash('sha256').update(token).digest('base64url');
  const prove = (more = {}, header = {}) =>
    new SignJWT({ htm: 'POST', htu: url, iat: now(), jti: randomUUID(), ath, ...more })
      .setProtectedHeader({ alg: 'ES256', typ: 'dpop+jwt', jwk, ...header })
      .sign(privateKey);
  const send = (dpop) => whoami({ authorization: `DPoP ${token}`, dpop });
  const refused = (name, make) =>
    check(`${name} is refused`, async () => {
      const told = await send(await make());
      assert.equal(told.status, 401, JSON.stringify(told));
      assert.match(told.challenge, /DPoP [^]*error="invalid_dpop_proof"/);
    });

  await check('a proof is taken once', async () => {
    const proof = await prove();
    assert.deepEqual([(await send(proof)).status, (await send(proof)).status], [200, 401]);
  });
  await refused('a proof for another method', () => prove({ htm: 'GET' }));
  await refused('a proof for another URL', () => prove({ htu: 'http://127.0.0.1:1/mcp' }));
  await refused('a proof for another token', () => prove({ ath: createHash('sha256').digest('base64url') }));
  await refused('a proof of long ago', () => prove({ iat: now() - 3600 }));
  await refused('a proof with the private key in it', async () => prove({}, { jwk: await exportJWK(privateKey) }));
  await refused('a proof of another key', async () => {
    const other = await generateKeyPair('ES256', { extractable: true });
    return prove({}, { jwk: await exportJWK(other.publicKey) });
  });
  await check('a token that is bound to a key is refused without a proof', async () => {
    assert.equal((await whoami(bearer(token))).status, 401);
  });
}
