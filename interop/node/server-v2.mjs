// Serves the shared catalogue with the TypeScript SDK v2, in both eras.   node server-v2.mjs [http|stateless]
// On stdio; with `http` on Streamable HTTP at /mcp, with sessions in the legacy era; with `stateless` as this SDK serves
// when nothing else is said.
import { randomUUID } from 'node:crypto';
import {
  McpServer,
  ResourceTemplate,
  WebStandardStreamableHTTPServerTransport,
  completable,
  createMcpHandler,
  inputRequired,
  isLegacyRequest,
} from '@modelcontextprotocol/server';
import { serveStdio } from '@modelcontextprotocol/server/stdio';
import { z } from 'zod';
import { offer } from './catalogue.mjs';
import { EventStore } from './event-store.mjs';
import { answer, listen, webRequest } from './http.mjs';
import { enliven } from './lively.mjs';

const RETRY_MS = 200;
const KEY = 'question';

const sessions = new Map();

// Asks by returning the question, and goes on when the answer is there. For legacy clients the SDK asks on its own.
function round(context, request, then) {
  const given = context.mcpReq.inputResponses?.[KEY];
  return given === undefined ? inputRequired({ inputRequests: { [KEY]: request } }) : then(given);
}

const sdk = {
  completable,
  ResourceTemplate,
  object: (shape) => z.object(shape),
  notify: (context, notification) => context.mcpReq.notify(notification),
  log: (_, context, { level, data, logger }) => context.mcpReq.log(level, data, logger),
  progressToken: (context) => context.mcpReq._meta?.progressToken,
  elicit: async (context, params, then) => round(context, inputRequired.elicit(params), then),
  sample: async (context, params, then) => round(context, inputRequired.createMessage(params), then),
  signal: (context) => context.mcpReq.signal,
  hangUp: (context) => {
    context.http?.closeSSE?.();
    return context.http?.closeSSE !== undefined;
  },
  drop: async (context) => context.http.closeStandaloneSSE(),
  sessions: () => sessions.size,
};

const make = () => offer(new McpServer({ name: 'interop-ts-v2', version: '1.0.0' }, { capabilities: { logging: {} } }), sdk);

const modern = createMcpHandler(
  () => enliven(make(), { ...sdk, changed: async () => modern.notify.toolsChanged() }),
  { legacy: 'reject' },
);

async function legacy(request) {
  const id = request.headers.get('mcp-session-id');
  if (id !== null && !sessions.has(id)) return new Response(null, { status: 404 });
  const transport = sessions.get(id) ?? (await open());
  return transport.handleRequest(request);
}

async function open() {
  const transport = new WebStandardStreamableHTTPServerTransport({
    sessionIdGenerator: randomUUID,
    eventStore: new EventStore(),
    retryInterval: RETRY_MS,
    onsessioninitialized: (id) => void sessions.set(id, transport),
    onsessionclosed: (id) => void sessions.delete(id),
  });
  const changed = (server) => server.server.sendToolListChanged();
  await enliven(make(), { ...sdk, changed }).connect(transport);
  return transport;
}

async function mcp(incoming, response, url) {
  const request = webRequest(incoming, response, url);
  const old = await isLegacyRequest(request);
  await answer(response, await (old ? legacy(request) : modern.fetch(request)));
}

const both = createMcpHandler(make);
const stateless = async (incoming, response, url) =>
  answer(response, await both.fetch(webRequest(incoming, response, url)));

const how = process.argv[2];
if (how === 'http') listen({ '/mcp': mcp });
else if (how === 'stateless') listen({ '/mcp': stateless });
else serveStdio(make);
