// Calls a server with the TypeScript SDK v2.
//   node client-v2.mjs legacy|modern|auto -- COMMAND [ARGUMENTS...]
//   node client-v2.mjs legacy|modern|auto http|stateless|sse URL
// `legacy` makes the handshake, `modern` insists on 2026-07-28, `auto` finds out and must find 2026-07-28.
import { Client, SSEClientTransport, StreamableHTTPClientTransport } from '@modelcontextprotocol/client';
import { StdioClientTransport } from '@modelcontextprotocol/client/stdio';
import { z } from 'zod';
import { Report, assert, commandLine, connectWatched, connection } from './check.mjs';
import { ANSWERS, CAPABILITIES, livelyWalk } from './lively-walk.mjs';
import { walk } from './walk.mjs';

const MODERN = '2026-07-28';
const SDK = { Stdio: StdioClientTransport, Http: StreamableHTTPClientTransport, Sse: SSEClientTransport };

const line = commandLine(['legacy', 'modern', 'auto']);
const { era } = line;
const link = connection(line, SDK);
const modern = era !== 'legacy';
const report = new Report();
const client = new Client(
  { name: 'interop-ts-v2', version: '1.0.0' },
  { capabilities: CAPABILITIES, versionNegotiation: { mode: era === 'modern' ? { pin: MODERN } : era } },
);
const logs = [];
const changes = [];
client.setNotificationHandler('notifications/message', ({ params }) => void logs.push(params));
client.setNotificationHandler('notifications/tools/list_changed', (change) => void changes.push(change));
client.setRequestHandler('elicitation/create', ANSWERS.elicit);
client.setRequestHandler('sampling/createMessage', ANSWERS.sample);

const wire = await report.check('connect', () => connectWatched(client, link.transport));
if (wire) {
  await report.check('the era is the one asked for', () => {
    assert.equal(client.getProtocolEra(), modern ? 'modern' : 'legacy');
    assert.equal(client.getNegotiatedProtocolVersion() === MODERN, modern);
  });
  const peer = {
    ...link,
    client,
    logs,
    changes,
    wire,
    modern,
    callTool: (params, options) => client.callTool(params, options),
    request: (method) => client.request({ method }, z.looseObject({})),
  };
  await walk(report, peer);
  if (['http', 'sse'].includes(link.how)) await livelyWalk(report, peer);
}
await report.check('close', () => client.close());
report.finish();
