// What pages of other origins may read of a protected server.
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { readFile } from 'node:fs/promises';
import { createServer } from 'node:http';
import { check } from './checks.mjs';

const PAGE = '<!doctype html><title>page</title><link rel="icon" href="data:,">';

// Serves an empty page and request.mjs, under any host name, and returns the port.
export async function servePages() {
  const script = await readFile(new URL('request.mjs', import.meta.url));
  const server = createServer(({ url }, response) => {
    const [type, body] = url === '/request.mjs' ? ['text/javascript', script] : ['text/html', PAGE];
    response.writeHead(200, { 'content-type': type }).end(body);
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  server.unref();
  return server.address().port;
}

export async function pages({ browser, port, signed: { url, provider } }) {
  const inPage = async (host, work, ...args) => {
    const page = await browser.newPage();
    try {
      await page.goto(`http://${host}:${port}/`);
      return await page.evaluate(work, args);
    } finally {
      await page.close();
    }
  };
  const callFrom = (host, token) => inPage(host, callInPage, url, token);
  const metadataFrom = (host) => inPage(host, readInPage, new URL('/.well-known/oauth-protected-resource/mcp', url).href);

  await check('a page of an allowed origin reads a 401, and where to log in', async () => {
    const told = await callFrom('app.test');
    assert.equal(told.status, 401, JSON.stringify(told));
    assert.match(told.challenge, /resource_metadata=/);
  });
  await check('it calls a tool with a token', async () => {
    const exp = Math.floor(Date.now() / 1000) + 60;
    const claims = { iss: provider.issuer, aud: url, sub: 'alice', client_id: 'page', scope: 'notes:read', exp };
    const told = await callFrom('app.test', await provider.sign(claims));
    assert.equal(told.text, 'alice: notes:read', JSON.stringify(told));
  });
  await check('a page of a third origin reads nothing', async () => {
    assert.match((await callFrom('other.test')).failed, /TypeError/);
  });
  await check('pages of all origins read the metadata', async () => {
    for (const host of ['app.test', 'other.test']) {
      const told = await metadataFrom(host);
      assert.deepEqual([told.resource, told.authorization_servers], [url, [provider.issuer]], JSON.stringify(told));
    }
  });
}

async function callInPage([url, token]) {
  const { call, bearer } = await import('/request.mjs');
  return call(url, 'whoami', { headers: token ? bearer(token) : {} }).catch((error) => ({ failed: String(error) }));
}

const readInPage = ([url]) => fetch(url).then((response) => response.json(), (error) => ({ failed: String(error) }));
