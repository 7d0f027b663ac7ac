// Serves the shared catalogue on stdio with the TypeScript SDK v1.   node server-v1.mjs
import { McpServer, ResourceTemplate } from '@modelcontextprotocol/sdk/server/mcp.js';
import { StdioServerTransport } from '@modelcontextprotocol/sdk/server/stdio.js';
import { completable } from '@modelcontextprotocol/sdk/server/completable.js';
import { offer } from './catalogue.mjs';

const server = new McpServer({ name: 'interop-ts-v1', version: '1.0.0' }, { capabilities: { logging: {} } });
offer(server, {
  completable,
  ResourceTemplate,
  object: (shape) => shape,
  notify: (context, notification) => context.sendNotification(notification),
  log: (_, context, params) => server.sendLoggingMessage(params, context.sessionId),
  progressToken: (context) => context._meta?.progressToken,
});
await server.connect(new StdioServerTransport());
