// Serves the shared catalogue with the TypeScript SDK v1.   node server-v1.mjs [http|stateless]
// On stdio; with `http` on Streamable HTTP at /mcp and on HTTP+SSE at /sse; with `stateless` without sessions.
import { randomUUID } from 'node:crypto';
import { McpServer, ResourceTemplate } from '@modelcontextprotocol/sdk/server/mcp.js';
import { SSEServerTransport } from '@modelcontextprotocol/sdk/server/sse.js';
import { StdioServerTransport } from '@modelcontextprotocol/sdk/server/stdio.js';
import { StreamableHTTPServerTransport } from '@modelcontextprotocol/sdk/server/streamableHttp.js';
import { completable } from '@modelcontextprotocol/sdk/server/completable.js';
import { CreateMessageResultSchema, ElicitResultSchema } from '@modelcontextprotocol/sdk/types.js';
import { offer } from './catalogue.mjs';
import { EventStore } from './event-store.mjs';
import { listen } from './http.mjs';
import { enliven } from './lively.mjs';

const RETRY_MS = 200;

const sessions = new Map();
const sdk = {
  completable,
  ResourceTemplate,
  object: (shape) => shape,
  notify: (context, notification) => context.sendNotification(notification),
  // As part of the request, so that it is on the stream of its answer.
  log: (_, context, params) => context.sendNotification({ method: 'notifications/message', params }),
  progressToken: (context) => context._meta?.progressToken,
  elicit: async (context, params, then) =>
    then(await context.sendRequest({ method: 'elicitation/create', params }, ElicitResultSchema)),
  sample: async (context, params, then) =>
    then(await context.sendRequest({ method: 'sampling/createMessage', params }, CreateMessageResultSchema)),
  signal: (context) => context.signal,
  hangUp: (context) => {
    context.closeSSEStream?.();
    return context.closeSSEStream !== undefined;
  },
  drop: async (context) => context.closeStandaloneSSEStream(),
  changed: (server) => server.server.sendToolListChanged(),
  sessions: () => sessions.size,
};

const make = () => offer(new McpServer({ name: 'interop-ts-v1', version: '1.0.0' }, { capabilities: { logging: {} } }), sdk);

async function mcp(request, response) {
  const id = request.headers['mcp-session-id'];
  if (id !== undefined && !sessions.has(id)) return void response.writeHead(404).end();
  const transport = sessions.get(id) ?? (await open());
  await transport.handleRequest(request, response);
}

async function open() {
  const transport = new StreamableHTTPServerTransport({
    sessionIdGenerator: randomUUID,
    eventStore: new EventStore(),
    retryInterval: RETRY_MS,
    onsessioninitialized: (id) => void sessions.set(id, transport),
    onsessionclosed: (id) => void sessions.delete(id),
  });
  await enliven(make(), sdk).connect(transport);
  return transport;
}

// Every request has a server of its own, and nothing is said to a client that has not asked.
async function stateless(request, response) {
  if (request.method !== 'POST') return void response.writeHead(405, { allow: 'POST' }).end();
  const transport = new StreamableHTTPServerTransport({ sessionIdGenerator: undefined });
  const server = make();
  response.once('close', () => void server.close());
  await server.connect(transport);
  await transport.handleRequest(request, response);
}

const streams = new Map();

async function sse(request, response) {
  if (request.method !== 'GET') return void response.writeHead(405, { allow: 'GET' }).end();
  const transport = new SSEServerTransport('/messages', response);
  streams.set(transport.sessionId, transport);
  response.once('close', () => streams.delete(transport.sessionId));
  await enliven(make(), sdk).connect(transport);
}

async function messages(request, response, url) {
  const transport = streams.get(url.searchParams.get('sessionId'));
  if (transport === undefined) return void response.writeHead(404).end();
  await transport.handlePostMessage(request, response);
}

const how = process.argv[2];
if (how === 'http') listen({ '/mcp': mcp, '/sse': sse, '/messages': messages });
else if (how === 'stateless') listen({ '/mcp': stateless });
else await make().connect(new StdioServerTransport());
