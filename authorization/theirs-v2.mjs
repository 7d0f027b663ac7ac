// A protected server of the official TypeScript SDK v2, in both eras.   node theirs-v2.mjs ISSUER
import {
  createMcpExpressApp,
  getOAuthProtectedResourceMetadataUrl,
  mcpAuthMetadataRouter,
  requireBearerAuth,
} from '@modelcontextprotocol/express';
import { toNodeHandler } from '@modelcontextprotocol/node';
import { McpServer, createMcpHandler } from '@modelcontextprotocol/server';
import { SCOPES, described, jwtVerifier, listen } from './theirs.mjs';

const [, , issuer] = process.argv;
const app = createMcpExpressApp();

function make() {
  const server = new McpServer({ name: 'theirs', version: '2.0' });
  server.registerTool('whoami', { description: 'Says who is calling' }, ({ http }) => ({
    content: [{ type: 'text', text: `${http.authInfo.extra?.subject}: ${http.authInfo.scopes.join(' ')}` }],
  }));
  return server;
}

listen(app, async (url) => {
  const oauthMetadata = await described(issuer);
  app.use(mcpAuthMetadataRouter({ oauthMetadata, resourceServerUrl: url, scopesSupported: SCOPES }));
  const resourceMetadataUrl = getOAuthProtectedResourceMetadataUrl(url);
  const verifier = jwtVerifier(oauthMetadata, url);
  const mcp = toNodeHandler(createMcpHandler(make));
  app.use('/mcp', requireBearerAuth({ verifier, requiredScopes: SCOPES, resourceMetadataUrl }));
  app.all('/mcp', (request, response) => mcp(request, response, request.body));
});
