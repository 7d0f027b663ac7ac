// Serves the shared catalogue on stdio with the TypeScript SDK v2, in both eras.   node server-v2.mjs
import { McpServer, ResourceTemplate, completable } from '@modelcontextprotocol/server';
import { serveStdio } from '@modelcontextprotocol/server/stdio';
import { z } from 'zod';
import { offer } from './catalogue.mjs';

const sdk = {
  completable,
  ResourceTemplate,
  object: (shape) => z.object(shape),
  notify: (context, notification) => context.mcpReq.notify(notification),
  log: (_, context, { level, data, logger }) => context.mcpReq.log(level, data, logger),
  progressToken: (context) => context.mcpReq._meta?.progressToken,
};

serveStdio(() => offer(new McpServer({ name: 'interop-ts-v2', version: '1.0.0' }, { capabilities: { logging: {} } }), sdk));
