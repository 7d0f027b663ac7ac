// Serves the page on a free port of the loopback, under any host name.
import { readFile } from 'node:fs/promises';
import { createServer } from 'node:http';
import { dirname, extname, normalize } from 'node:path';
import { fileURLToPath } from 'node:url';

const HERE = dirname(fileURLToPath(import.meta.url));

// What the packages export to browsers.
const IMPORTS = {
  '@modelcontextprotocol/client': '/node_modules/@modelcontextprotocol/client/dist/index.mjs',
  '@modelcontextprotocol/client/_shims': '/node_modules/@modelcontextprotocol/client/dist/shimsBrowser.mjs',
  '@modelcontextprotocol/core/internal': '/node_modules/@modelcontextprotocol/core/dist/internal.mjs',
  eventsource: '/node_modules/eventsource/dist/index.js',
  'eventsource-parser': '/node_modules/eventsource-parser/dist/index.js',
  'eventsource-parser/stream': '/node_modules/eventsource-parser/dist/stream.js',
  'pkce-challenge': '/node_modules/pkce-challenge/dist/index.browser.js',
  'zod/v4': '/node_modules/zod/v4/index.js',
};
const PAGE = `<!doctype html>
<title>Toolwire</title>
<link rel="icon" href="data:,">
<script type="importmap">${JSON.stringify({ imports: IMPORTS })}</script>
<script type="module">
  import * as page from '/page.mjs';
  window.page = page;
</script>
`;
const TYPES = { '.js': 'text/javascript', '.mjs': 'text/javascript' };

// The port, once it is there.
export async function servePages() {
  const server = createServer(async (request, response) => {
    const path = normalize(new URL(request.url, 'http://page').pathname);
    if (path === '/') return void response.writeHead(200, { 'content-type': 'text/html' }).end(PAGE);
    const type = TYPES[extname(path)];
    const file = type && (await readFile(HERE + path).catch(() => undefined));
    if (file === undefined) return void response.writeHead(404).end();
    response.writeHead(200, { 'content-type': type }).end(file);
  });
  await new Promise((resolve) => server.listen(0, '127.0.0.1', resolve));
  server.unref();
  return server.address().port;
}
