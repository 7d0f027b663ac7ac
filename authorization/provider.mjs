// A real authorization server on a free port of the loopback: oidc-provider, in one of several profiles.
import { once } from 'node:events';
import { createServer } from 'node:http';
import { SignJWT, exportJWK, generateKeyPair } from 'jose';
import { Provider, errors } from 'oidc-provider';
import { CLIENTS, addGrants } from './grants.mjs';

export const SECRETS = { notes: 'the secret of the server', robot: 'the secret of a robot' };
const SCOPES = ['notes:read', 'notes:write'];
const ROLES = { bob: 'auditor' };
export const HOUR = 3600;

// It recommends what a server of the real world needs; this one is for tests, and standard output is for checks.
console.info = console.warn = () => {};

// Starts one. `tokenSeconds` is how long access tokens last; `opaque`: nobody but it can read them; `nonces`: each proof
// of possession needs a nonce of it; `strict`: clients are bound to the scopes that they were registered with; `offline`:
// only what is asked for with `offline_access` and a consent can be renewed.
export async function startProvider(profile = {}) {
  const { tokenSeconds = HOUR, opaque = false } = profile;
  const server = createServer();
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  server.unref();
  const issuer = `http://127.0.0.1:${server.address().port}`;
  const keys = await signingKeys();
  let lasts = tokenSeconds;
  const ofResource = (resource) => resourceServer(resource, lasts, opaque);
  const provider = new Provider(issuer, configuration({ ...profile, keys, ofResource }));
  const sign = (claims, header = {}) =>
    new SignJWT(claims)
      .setProtectedHeader({ alg: 'ES256', typ: 'at+jwt', kid: 'es', ...header })
      .sign(keys.es.privateKey);
  const trusted = new Map([[issuer, keys.es.publicKey]]);
  addGrants(provider, { issuer, sign, trusted, resourceServer: ofResource });
  const seen = [];
  const grants = new Set();
  provider.use(async (ctx, next) => {
    await next();
    const { params, body } = ctx.oidc ?? {};
    seen.push({ path: ctx.path, status: ctx.status, grant: params?.grant_type, client: body?.client_name });
  });
  provider.on('grant.success', ({ oidc }) => grants.add(oidc.entities.Grant));
  server.on('request', provider.callback());
  return {
    issuer,
    // What was asked of it at this path, and for this grant: each as { path, status, grant, client }.
    asked: (path, grant) => seen.filter((one) => one.path === path && (grant ?? one.grant) === one.grant),
    // How long tokens last from now on.
    tokensLast: (seconds) => void (lasts = seconds),
    // Takes back everything that people have granted.
    withdraw: () => Promise.all([...grants].map((grant) => grant?.destroy())),
    // Takes assertions of somebody else, by their key.
    trust: (other, publicKey) => trusted.set(other, publicKey),
    // Signs claims as this server does.
    sign,
    publicKey: keys.es.publicKey,
  };
}

async function signingKeys() {
  const make = (alg) => generateKeyPair(alg, { extractable: true });
  const [es, rs] = await Promise.all([make('ES256'), make('RS256')]);
  return { es, jwks: { keys: [await jwk(es, 'es', 'ES256'), await jwk(rs, 'rs', 'RS256')] } };
}

const jwk = async ({ privateKey }, kid, alg) => ({ ...(await exportJWK(privateKey)), kid, alg, use: 'sig' });

function configuration({ opaque = false, nonces = false, strict = false, offline = false, keys, ofResource }) {
  return {
    jwks: keys.jwks,
    scopes: ['openid', 'offline_access', ...SCOPES],
    clients: [client('notes'), client('robot', ['client_credentials']), ...CLIENTS],
    cookies: { keys: ['not a secret'] },
    findAccount: (_, id) => ({ accountId: id, claims: () => ({ sub: id }) }),
    extraTokenClaims: (_, token) => (ROLES[token.accountId] ? { role: ROLES[token.accountId] } : undefined),
    extraClientMetadata: { properties: ['any'], validator: (...args) => strict || delete args.at(-1).scope },
    pkce: { required: () => true },
    // Whoever may renew is allowed to, as most servers have it.
    issueRefreshToken: (_, registered, code) =>
      registered.grantTypeAllowed('refresh_token') && (!offline || code.scopes.has('offline_access')),
    rotateRefreshToken: true,
    clientBasedCORS: () => true,
    ttl: { Session: HOUR, Grant: HOUR, Interaction: HOUR, RefreshToken: HOUR, DeviceCode: HOUR, IdToken: HOUR },
    features: {
      registration: { enabled: true },
      deviceFlow: { enabled: true },
      clientCredentials: { enabled: true },
      revocation: { enabled: true, allowedPolicy: (ctx, asking, token) => token.clientId === asking.clientId },
      introspection: { enabled: opaque, allowedPolicy: (_, asking) => asking.clientId === 'notes' },
      dPoP: { enabled: true, nonceSecret: Buffer.alloc(32, 7), requireNonce: () => nonces },
      resourceIndicators: {
        enabled: true,
        useGrantedResource: () => true,
        getResourceServerInfo: (_, resource) => ofResource(resource),
      },
    },
  };
}

function client(id, grant_types = []) {
  return { client_id: id, client_secret: SECRETS[id], redirect_uris: [], response_types: [], grant_types };
}

// Any MCP server of this machine is one of its own.
function resourceServer(resource, accessTokenTTL, opaque) {
  const { hostname, pathname } = new URL(resource);
  if (hostname !== '127.0.0.1' || pathname !== '/mcp') throw new errors.InvalidTarget();
  return {
    scope: SCOPES.join(' '),
    audience: resource,
    accessTokenTTL,
    accessTokenFormat: opaque ? 'opaque' : 'jwt',
    jwt: { sign: { alg: 'ES256' } },
  };
}
