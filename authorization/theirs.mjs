// What protected servers of other makers have in common, here: where they are, and whose tokens they take.
import { createServer } from 'node:http';
import { createRemoteJWKSet, jwtVerify } from 'jose';

export const SCOPES = ['notes:read'];

// Serves an app on a free port of the loopback once `prepare` has put together what depends on its URL, which it prints.
export function listen(app, prepare) {
  const server = createServer(app);
  server.listen(0, '127.0.0.1', async () => {
    const url = new URL(`http://127.0.0.1:${server.address().port}/mcp`);
    await prepare(url);
    process.stdout.write(`${url.href}\n`);
  });
}

// What an issuer says of itself.
export async function described(issuer) {
  const response = await fetch(`${issuer}/.well-known/openid-configuration`);
  return response.json();
}

// Takes signed tokens that are for this server.
export function jwtVerifier({ issuer, jwks_uri: keys }, url) {
  const jwks = createRemoteJWKSet(new URL(keys));
  return {
    async verifyAccessToken(token) {
      const { payload } = await jwtVerify(token, jwks, { issuer, audience: url.href, typ: 'at+jwt' });
      const { client_id: clientId, scope, exp: expiresAt, sub: subject } = payload;
      return { token, clientId, scopes: scope?.split(' ') ?? [], expiresAt, resource: url, extra: { subject } };
    },
  };
}
