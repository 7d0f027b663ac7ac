// The official TypeScript client: what it needs to log in.
import { Client, DpopSession, StreamableHTTPClientTransport, UnauthorizedError } from '@modelcontextprotocol/client';
import { REDIRECT } from './generic.mjs';

// Connects, calls tools, logs in as often as it is told to, and returns what the tools said.
export async function officialCalls(url, { person, era, calls, bound = false }) {
  const login = provider(person, bound);
  const mode = era === 'modern' ? { pin: '2026-07-28' } : 'legacy';
  let client;
  let transport;
  const connect = async () => {
    client = new Client({ name: 'official', version: '1.0' }, { versionNegotiation: { mode } });
    transport = new StreamableHTTPClientTransport(new URL(url), { authProvider: login });
    await client.connect(transport);
  };
  const loggedIn = async (attempt) => {
    try {
      return await attempt();
    } catch (error) {
      if (!(error instanceof UnauthorizedError)) throw error;
      await transport.finishAuth(new URL(login.answer).searchParams);
      return attempt();
    }
  };
  await loggedIn(connect);
  const said = [];
  for (const [name, args] of calls) {
    said.push((await loggedIn(() => client.callTool({ name, arguments: args }))).content[0].text);
  }
  await client.close();
  return said;
}

function provider(person, bound) {
  const kept = {};
  const session = bound ? DpopSession.create() : undefined;
  return {
    redirectUrl: REDIRECT,
    clientMetadata: {
      client_name: 'official',
      redirect_uris: [REDIRECT],
      application_type: 'native',
      token_endpoint_auth_method: 'none',
      grant_types: ['authorization_code', 'refresh_token'],
    },
    clientInformation: () => kept.client,
    saveClientInformation: (client) => void (kept.client = client),
    tokens: () => kept.tokens,
    saveTokens: (tokens) => void (kept.tokens = tokens),
    codeVerifier: () => kept.verifier,
    saveCodeVerifier: (verifier) => void (kept.verifier = verifier),
    dpop: () => session,
    async redirectToAuthorization(page) {
      this.answer = await person({ url: page.href });
    },
  };
}
