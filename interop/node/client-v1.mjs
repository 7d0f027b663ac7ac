// Calls a server with the TypeScript SDK v1.
//   node client-v1.mjs legacy -- COMMAND [ARGUMENTS...]
//   node client-v1.mjs legacy http|stateless|sse URL
import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { SSEClientTransport } from '@modelcontextprotocol/sdk/client/sse.js';
import { StdioClientTransport } from '@modelcontextprotocol/sdk/client/stdio.js';
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js';
import {
  CreateMessageRequestSchema,
  ElicitRequestSchema,
  LoggingMessageNotificationSchema,
  ResultSchema,
  ToolListChangedNotificationSchema,
} from '@modelcontextprotocol/sdk/types.js';
import { Report, commandLine, connectWatched, connection } from './check.mjs';
import { ANSWERS, CAPABILITIES, livelyWalk } from './lively-walk.mjs';
import { walk } from './walk.mjs';

const SDK = { Stdio: StdioClientTransport, Http: StreamableHTTPClientTransport, Sse: SSEClientTransport };

const link = connection(commandLine(['legacy']), SDK);
const report = new Report();
const client = new Client({ name: 'interop-ts-v1', version: '1.0.0' }, { capabilities: CAPABILITIES });
const logs = [];
const changes = [];
client.setNotificationHandler(LoggingMessageNotificationSchema, ({ params }) => void logs.push(params));
client.setNotificationHandler(ToolListChangedNotificationSchema, (change) => void changes.push(change));
client.setRequestHandler(ElicitRequestSchema, ANSWERS.elicit);
client.setRequestHandler(CreateMessageRequestSchema, ANSWERS.sample);

const wire = await report.check('connect', () => connectWatched(client, link.transport));
if (wire) {
  const peer = {
    ...link,
    client,
    logs,
    changes,
    wire,
    modern: false,
    callTool: (params, options) => client.callTool(params, undefined, options),
    request: (method) => client.request({ method }, ResultSchema),
  };
  await walk(report, peer);
  if (['http', 'sse'].includes(link.how)) await livelyWalk(report, peer);
}
await report.check('close', () => client.close());
report.finish();
