// Calls a stdio server with the TypeScript SDK v1.   node client-v1.mjs legacy -- COMMAND [ARGUMENTS...]
import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { StdioClientTransport } from '@modelcontextprotocol/sdk/client/stdio.js';
import { LoggingMessageNotificationSchema, ResultSchema } from '@modelcontextprotocol/sdk/types.js';
import { Report, commandLine, connectWatched } from './check.mjs';
import { walk } from './walk.mjs';

const { command, args } = commandLine(['legacy']);
const report = new Report();
const client = new Client({ name: 'interop-ts-v1', version: '1.0.0' });
const logs = [];
client.setNotificationHandler(LoggingMessageNotificationSchema, ({ params }) => void logs.push(params));

const wire = await report.check('connect', () => connectWatched(client, new StdioClientTransport({ command, args })));
if (wire) {
  await walk(report, {
    client,
    logs,
    wire,
    modern: false,
    callTool: (params, options) => client.callTool(params, undefined, options),
    request: (method) => client.request({ method }, ResultSchema),
  });
}
await report.check('close', () => client.close());
report.finish();
