// A protected server of the official TypeScript SDK v1.   node theirs-v1.mjs ISSUER
// Takes the tokens of an issuer; with `own` it is its own authorization server, as that SDK has one.
import express from 'express';
import { DemoInMemoryAuthProvider } from '@modelcontextprotocol/sdk/examples/server/demoInMemoryOAuthProvider.js';
import { requireBearerAuth } from '@modelcontextprotocol/sdk/server/auth/middleware/bearerAuth.js';
import {
  getOAuthProtectedResourceMetadataUrl,
  mcpAuthMetadataRouter,
  mcpAuthRouter,
} from '@modelcontextprotocol/sdk/server/auth/router.js';
import { McpServer } from '@modelcontextprotocol/sdk/server/mcp.js';
import { StreamableHTTPServerTransport } from '@modelcontextprotocol/sdk/server/streamableHttp.js';
import { SCOPES, described, jwtVerifier, listen } from './theirs.mjs';

const [, , issuer] = process.argv;
const app = express();
app.use(express.json());

listen(app, async (url) => {
  const verifier = issuer === 'own' ? ownIssuer(url) : await othersIssuer(url);
  const resourceMetadataUrl = getOAuthProtectedResourceMetadataUrl(url);
  app.use('/mcp', requireBearerAuth({ verifier, requiredScopes: SCOPES, resourceMetadataUrl }));
  app.post('/mcp', serve);
  app.all('/mcp', (_, response) => void response.status(405).end());
});

function ownIssuer(url) {
  const provider = new DemoInMemoryAuthProvider((resource) => resource?.href === url.href);
  app.use(mcpAuthRouter({ provider, issuerUrl: new URL(url.origin), resourceServerUrl: url, scopesSupported: SCOPES }));
  return provider;
}

async function othersIssuer(url) {
  const oauthMetadata = await described(issuer);
  app.use(mcpAuthMetadataRouter({ oauthMetadata, resourceServerUrl: url, scopesSupported: SCOPES }));
  return jwtVerifier(oauthMetadata, url);
}

async function serve(request, response) {
  const server = new McpServer({ name: 'theirs', version: '1.0' });
  server.registerTool('whoami', { description: 'Says who is calling' }, ({ authInfo }) => ({
    content: [{ type: 'text', text: `${authInfo.extra?.subject ?? 'somebody'}: ${authInfo.scopes.join(' ')}` }],
  }));
  const transport = new StreamableHTTPServerTransport({ sessionIdGenerator: undefined });
  response.on('close', () => void server.close());
  await server.connect(transport);
  await transport.handleRequest(request, response, request.body);
}
