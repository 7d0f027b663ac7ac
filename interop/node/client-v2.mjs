// Calls a stdio server with the TypeScript SDK v2.
//   node client-v2.mjs legacy|modern|auto -- COMMAND [ARGUMENTS...]
// `legacy` makes the handshake, `modern` insists on 2026-07-28, `auto` finds out and must find 2026-07-28.
import { Client } from '@modelcontextprotocol/client';
import { StdioClientTransport } from '@modelcontextprotocol/client/stdio';
import { z } from 'zod';
import { Report, assert, commandLine, connectWatched } from './check.mjs';
import { walk } from './walk.mjs';

const MODERN = '2026-07-28';

const { era, command, args } = commandLine(['legacy', 'modern', 'auto']);
const modern = era !== 'legacy';
const report = new Report();
const client = new Client(
  { name: 'interop-ts-v2', version: '1.0.0' },
  { versionNegotiation: { mode: era === 'modern' ? { pin: MODERN } : era } },
);
const logs = [];
client.setNotificationHandler('notifications/message', ({ params }) => void logs.push(params));

const wire = await report.check('connect', () => connectWatched(client, new StdioClientTransport({ command, args })));
if (wire) {
  await report.check('the era is the one asked for', () => {
    assert.equal(client.getProtocolEra(), modern ? 'modern' : 'legacy');
    assert.equal(client.getNegotiatedProtocolVersion() === MODERN, modern);
  });
  await walk(report, {
    client,
    logs,
    wire,
    modern,
    callTool: (params, options) => client.callTool(params, options),
    request: (method) => client.request({ method }, z.looseObject({})),
  });
}
await report.check('close', () => client.close());
report.finish();
