// The two grants that oidc-provider does not have by itself: an assertion for a token (RFC 7523), and a login for an
// assertion to somebody else (RFC 8693, as the identity provider of a company gives it).
import { decodeJwt, jwtVerify } from 'jose';
import { errors } from 'oidc-provider';

const EXCHANGE = 'urn:ietf:params:oauth:grant-type:token-exchange';
const ID_JAG = 'urn:ietf:params:oauth:token-type:id-jag';
const BEARER = 'urn:ietf:params:oauth:grant-type:jwt-bearer';
const MINUTE = 60;

export const CLIENTS = [
  { client_id: 'pod', grant_types: [BEARER] },
  { client_id: 'desk', grant_types: [BEARER] },
  { client_id: 'desk-idp', grant_types: [EXCHANGE] },
].map((client) => ({ ...client, redirect_uris: [], response_types: [], token_endpoint_auth_method: 'none' }));

// `trusted` has the keys of those whose assertions are taken, by their issuers.
export function addGrants(provider, { issuer, sign, trusted, resourceServer }) {
  const verified = async (assertion) => {
    const key = trusted.get(decodeJwt(assertion).iss);
    return (await jwtVerify(assertion, key, { audience: issuer })).payload;
  };

  const bearer = async (ctx) => {
    const { client, params } = ctx.oidc;
    const claims = await verified(params.assertion).catch(() => {
      throw new errors.InvalidGrant('the assertion is not valid');
    });
    if ((claims.client_id ?? client.clientId) !== client.clientId) throw new errors.InvalidGrant('of another client');
    // An identity assertion says for which server and which scopes it is.
    const resource = claims.resource ?? params.resource;
    const scope = claims.scope ?? params.scope;
    const grant = new provider.Grant({ accountId: claims.sub, clientId: client.clientId });
    grant.addResourceScope(resource, scope);
    const grantId = await grant.save();
    const token = new provider.AccessToken({ accountId: claims.sub, client, grantId, gty: BEARER, scope });
    token.resourceServer = new provider.ResourceServer(resource, resourceServer(resource));
    const access_token = await token.save();
    ctx.body = { access_token, token_type: 'Bearer', expires_in: token.expiration, scope };
  };
  provider.registerGrantType(BEARER, bearer, ['assertion', 'scope', 'resource']);

  const exchange = async (ctx) => {
    const { client, params } = ctx.oidc;
    const login = await jwtVerify(params.subject_token, trusted.get(issuer), { issuer, audience: client.clientId });
    const { sub } = login.payload;
    if (params.requested_token_type !== ID_JAG) throw new errors.InvalidRequest('only identity assertions are given');
    const iat = Math.floor(Date.now() / 1000);
    const { audience: aud, resource, scope } = params;
    const claims = { iss: issuer, sub, aud, client_id: 'desk', resource, scope, iat, exp: iat + MINUTE };
    const access_token = await sign({ ...claims, jti: crypto.randomUUID() }, { typ: 'oauth-id-jag+jwt' });
    ctx.body = { access_token, issued_token_type: ID_JAG, token_type: 'N_A', expires_in: MINUTE, scope };
  };
  const subject = ['subject_token', 'subject_token_type', 'requested_token_type'];
  provider.registerGrantType(EXCHANGE, exchange, [...subject, 'audience', 'resource', 'scope']);
}
