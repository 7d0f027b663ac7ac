// A server on a free port of the loopback, which it prints; and the way from node's requests to those of the
// web standard and back.
import { createServer } from 'node:http';
import { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';

// `routes` maps paths to (request, response, url) => promise.
export function listen(routes) {
  const server = createServer((request, response) => {
    const url = new URL(request.url, `http://${request.headers.host}`);
    const route = routes[url.pathname];
    if (route === undefined) return void response.writeHead(404).end();
    route(request, response, url).catch((error) => {
      process.stderr.write(`${error?.stack ?? error}\n`);
      if (response.headersSent) response.destroy();
      else response.writeHead(500).end();
    });
  });
  server.listen(0, '127.0.0.1', () => process.stdout.write(`http://127.0.0.1:${server.address().port}/mcp\n`));
}

// The request as the web standard has it. It is aborted when the client hangs up.
export function webRequest(request, response, url) {
  const gone = new AbortController();
  response.once('close', () => gone.abort());
  const body = ['GET', 'HEAD'].includes(request.method) ? undefined : Readable.toWeb(request);
  const headers = new Headers();
  for (let i = 0; i < request.rawHeaders.length; i += 2) {
    headers.append(request.rawHeaders[i], request.rawHeaders[i + 1]);
  }
  return new Request(url, { method: request.method, headers, body, duplex: 'half', signal: gone.signal });
}

export async function answer(response, { status, headers, body }) {
  response.writeHead(status, Object.fromEntries(headers));
  // The client learns that the stream is open before there is anything on it.
  response.flushHeaders();
  if (body === null) return void response.end();
  // Whoever hangs up in the middle of a stream does nothing wrong.
  await pipeline(Readable.fromWeb(body), response).catch(() => {});
}
