// One request to an MCP server, without any SDK. Runs in pages as well.
const MODERN = '2026-07-28';

export async function call(url, tool, { args = {}, headers = {}, fetch = globalThis.fetch } = {}) {
  const _meta = {
    'io.modelcontextprotocol/protocolVersion': MODERN,
    'io.modelcontextprotocol/clientInfo': { name: 'test', version: '1.0' },
    'io.modelcontextprotocol/clientCapabilities': {},
  };
  const params = { name: tool, arguments: args, _meta };
  const response = await fetch(url, {
    method: 'POST',
    headers: {
      'content-type': 'application/json',
      accept: 'application/json, text/event-stream',
      'mcp-protocol-version': MODERN,
      'mcp-method': 'tools/call',
      'mcp-name': tool,
      ...headers,
    },
    body: JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'tools/call', params }),
  });
  const body = await response.json();
  return {
    status: response.status,
    challenge: response.headers.get('www-authenticate'),
    text: body.result?.content?.[0]?.text,
    error: body.error,
  };
}

export const bearer = (token) => ({ authorization: `Bearer ${token}` });
