// A client that knows OAuth and nothing of MCP: oauth4webapi, which is certified.
import * as oauth from 'oauth4webapi';
import { SECRETS } from './provider.mjs';

export const REDIRECT = 'http://127.0.0.1/callback';
const INSECURE = { [oauth.allowInsecureRequests]: true };

// From the URL of a server to its issuer, by its metadata.
export async function discover(url) {
  const resource = await oauth.resourceDiscoveryRequest(new URL(url), INSECURE);
  const { authorization_servers: issuers } = await oauth.processResourceDiscoveryResponse(new URL(url), resource);
  const issuer = new URL(issuers[0]);
  const found = await oauth.discoveryRequest(issuer, { algorithm: 'oauth2', ...INSECURE });
  return oauth.processDiscoveryResponse(issuer, found);
}

// Registers a client and lets a person log in; returns the token response. With a key, the token is bound to it.
export async function logIn(url, { person, scope, key }) {
  const as = await discover(url);
  const metadata = {
    client_name: 'oauth4webapi',
    redirect_uris: [REDIRECT],
    application_type: 'native',
    token_endpoint_auth_method: 'none',
    grant_types: ['authorization_code', 'refresh_token'],
  };
  const registered = await oauth.dynamicClientRegistrationRequest(as, metadata, INSECURE);
  const client = await oauth.processDynamicClientRegistrationResponse(registered);
  const verifier = oauth.generateRandomCodeVerifier();
  const state = oauth.generateRandomState();
  const page = new URL(as.authorization_endpoint);
  page.search = new URLSearchParams({
    client_id: client.client_id,
    redirect_uri: REDIRECT,
    response_type: 'code',
    scope,
    state,
    resource: url,
    code_challenge: await oauth.calculatePKCECodeChallenge(verifier),
    code_challenge_method: 'S256',
  });
  // This looks at the issuer in the answer, too.
  const answer = oauth.validateAuthResponse(as, client, new URL(await person({ url: page.href })), state);
  const DPoP = key && oauth.DPoP(client, key);
  const ask = () =>
    oauth
      .authorizationCodeGrantRequest(as, client, oauth.None(), answer, REDIRECT, verifier, {
        additionalParameters: { resource: url },
        DPoP,
        ...INSECURE,
      })
      .then((response) => oauth.processAuthorizationCodeResponse(as, client, response));
  return { ...(await withNonce(ask)), DPoP };
}

// A token of a program that nobody sits at.
export async function robotToken(url, scope) {
  const as = await discover(url);
  const client = { client_id: 'robot' };
  const secret = oauth.ClientSecretBasic(SECRETS.robot);
  const response = await oauth.clientCredentialsGrantRequest(as, client, secret, { scope, resource: url }, INSECURE);
  return oauth.processClientCredentialsResponse(as, client, response);
}

// `fetch` for request.mjs, with a token, and with a proof if it is bound to a key.
export const fetchWith = ({ access_token: token, DPoP }) => (url, { method, headers, body }) =>
  withNonce(() =>
    oauth.protectedResourceRequest(token, method, new URL(url), new Headers(headers), body, { DPoP, ...INSECURE }),
  );

// Whoever is asked for a nonce has learned it by that, and asks again.
async function withNonce(ask) {
  try {
    return await ask();
  } catch (error) {
    if (!oauth.isDPoPNonceError(error)) throw error;
    return ask();
  }
}
