// What the page does. Everything returns plain data for `run.mjs` to judge.
const MODERN = '2026-07-28';
const LEGACY = '2025-11-25';
const INFO = { name: 'page', version: '1.0.0' };
const JSON_TYPES = { 'content-type': 'application/json', accept: 'application/json, text/event-stream' };

// A modern call of a tool, with the headers that mirror it.
export async function modern(url, name, args = {}, _meta = {}, more = {}) {
  const meta = {
    'io.modelcontextprotocol/protocolVersion': MODERN,
    'io.modelcontextprotocol/clientInfo': INFO,
    'io.modelcontextprotocol/clientCapabilities': {},
    ..._meta,
  };
  const headers = { 'mcp-protocol-version': MODERN, 'mcp-method': 'tools/call', 'mcp-name': name, ...more };
  return told(() => post(url, headers, 'tools/call', { name, arguments: args, _meta: meta }));
}

// The first request of a legacy client.
export async function initialize(url) {
  const params = { protocolVersion: LEGACY, clientInfo: INFO, capabilities: {} };
  return told(() => post(url, {}, 'initialize', params));
}

// A request of the kind that a form can send, so that browsers do not ask first. Its answer cannot be read.
export async function withoutAsking(url, type) {
  const params = { name: 'tally', arguments: {}, _meta: { 'io.modelcontextprotocol/protocolVersion': MODERN } };
  const body = JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'tools/call', params });
  const headers = { 'content-type': type, accept: 'application/json, text/event-stream' };
  return told(() => fetch(url, { method: 'POST', mode: 'no-cors', headers, body }));
}

// A legacy client from the handshake to the end of its session.
export async function session(url) {
  const opened = await initialize(url);
  const headers = { 'mcp-session-id': opened.session, 'mcp-protocol-version': LEGACY };
  const ready = await notify(url, headers, 'notifications/initialized');
  const meta = { progressToken: 'p' };
  const counted = await told(() => post(url, headers, 'tools/call', { name: 'count', arguments: { to: 3 }, _meta: meta }));
  const changed = await change(url, headers);
  const deleted = await told(() => fetch(url, { method: 'DELETE', headers }));
  const late = await told(() => post(url, headers, 'ping', {}));
  return { opened, ready, counted, changed, deleted, late };
}

// The first message on the stream that belongs to no request.
async function change(url, headers) {
  const stream = await fetch(url, { headers: { ...headers, accept: 'text/event-stream' } });
  const called = await told(() => post(url, headers, 'tools/call', { name: 'change', arguments: {} }));
  const reader = stream.body.pipeThrough(new TextDecoderStream()).getReader();
  let text = '';
  while (messages(text).length === 0) {
    const { done, value } = await reader.read();
    if (done) break;
    text += value;
  }
  await reader.cancel();
  return { status: stream.status, called: called.status, messages: messages(text) };
}

// The official client, which finds nothing unusual in being in a browser.
export async function official(url, era) {
  const { Client, StreamableHTTPClientTransport } = await import('@modelcontextprotocol/client');
  const mode = era === 'modern' ? { pin: MODERN } : 'legacy';
  const client = new Client(INFO, { capabilities: { elicitation: { form: {} } }, versionNegotiation: { mode } });
  client.setRequestHandler('elicitation/create', async () => ({ action: 'accept', content: { name: 'Ada' } }));
  const transport = new StreamableHTTPClientTransport(new URL(url));
  await client.connect(transport);
  const version = client.getNegotiatedProtocolVersion();
  const { tools } = await client.listTools();
  const asked = await client.callTool({ name: 'ask', arguments: {} });
  const progress = [];
  const onprogress = (step) => void progress.push(step.progress);
  const counted = await client.callTool({ name: 'count', arguments: { to: 50 } }, { onprogress });
  const session = transport.sessionId;
  if (session !== undefined) await transport.terminateSession();
  await client.close();
  const said = ({ content }) => content[0].text;
  return { version, tools: tools.length, asked: said(asked), counted: said(counted), progress, session };
}

async function post(url, headers, method, params) {
  const body = JSON.stringify({ jsonrpc: '2.0', id: 1, method, params });
  return fetch(url, { method: 'POST', headers: { ...JSON_TYPES, ...headers }, body });
}

async function notify(url, headers, method) {
  const body = JSON.stringify({ jsonrpc: '2.0', method });
  return told(() => fetch(url, { method: 'POST', headers: { ...JSON_TYPES, ...headers }, body }));
}

// What the page learns: either a response, or that there is none for it to see.
async function told(send) {
  try {
    const response = await send();
    const type = response.headers.get('content-type');
    const text = await response.text();
    return {
      status: response.status,
      opaque: response.type === 'opaque',
      type,
      session: response.headers.get('mcp-session-id'),
      messages: type?.startsWith('text/event-stream') ? messages(text) : text === '' ? [] : [JSON.parse(text)],
    };
  } catch (error) {
    return { failed: String(error) };
  }
}

// The messages of an event stream, as far as they are complete.
function messages(text) {
  const events = text.split('\n\n').slice(0, -1);
  const data = (event) => event.split('\n').filter((line) => line.startsWith('data:')).map((line) => line.slice(5).trim());
  return events.map((event) => data(event).join('\n')).filter((json) => json !== '').map((json) => JSON.parse(json));
}
