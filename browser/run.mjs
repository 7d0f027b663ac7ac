// Pages of several origins against servers that allow nobody, or one of them.   node run.mjs CHROMIUM SERVER
// Prints one JSON line per check, and exits with 0 only when there were checks and all of them held.
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { createInterface } from 'node:readline';
import { setTimeout as sleep } from 'node:timers/promises';
import { isDeepStrictEqual } from 'node:util';
import { chromium } from 'playwright-core';
import { allHeld, check, giveUpAfter } from './checks.mjs';
import { servePages } from './pages.mjs';

// A browser that hangs must fail the run.
const TOTAL_MS = 150_000;
const STEP_MS = 30_000;
const SOON_MS = 50;
const ATTEMPTS = 200;
const HOSTS = ['app.test', 'other.test'];
const FLAGS = [
  '--disable-gpu',
  '--disable-quic',
  '--no-first-run',
  '--disable-background-networking',
  '--disable-component-update',
  '--disable-sync',
  `--host-resolver-rules=${HOSTS.map((host) => `MAP ${host} 127.0.0.1`).join(',')}`,
];

const [, , executablePath, serverProgram] = process.argv;
if (serverProgram === undefined) {
  process.stderr.write(`usage: ${process.argv[1]} CHROMIUM SERVER\n`);
  process.exit(2);
}

const children = [];
process.on('exit', () => children.forEach((child) => child.kill('SIGKILL')));
giveUpAfter(TOTAL_MS);

// Starts a server that allows these origins, and returns its URL.
async function serve(...origins) {
  const child = spawn(serverProgram, origins, { stdio: ['ignore', 'pipe', 'inherit'] });
  children.push(child);
  const [url] = await Promise.race([
    once(createInterface(child.stdout), 'line'),
    once(child, 'exit').then(() => assert.fail('the server ended before it was ready')),
  ]);
  return url;
}

// How often the tool was run, this time included: asked by somebody who is not a browser.
async function tally(url) {
  const { modern } = await import('./page.mjs');
  return Number((await modern(url, 'tally')).messages[0].result.content[0].text);
}

// A page of an origin, and what the network has seen of it, whether the page may know it or not.
async function open(browser, origin) {
  const context = await browser.newContext();
  const page = await context.newPage();
  page.setDefaultTimeout(STEP_MS);
  await page.goto(`${origin}/`);
  await page.waitForFunction(() => window.page !== undefined);
  const session = await context.newCDPSession(page);
  await session.send('Network.enable');
  const methods = new Map();
  const seen = [];
  session.on('Network.requestWillBeSent', ({ requestId, request }) => methods.set(requestId, request.method));
  session.on('Network.responseReceivedExtraInfo', ({ requestId, statusCode }) => seen.push([requestId, statusCode]));
  return {
    run: (name, ...args) => page.evaluate(([name, args]) => window.page[name](...args), [name, args]),
    // Waits for these responses, each as [method, status]; returns all there were since the last time.
    async seen(...expected) {
      const responses = () => seen.map(([id, status]) => [methods.get(id), status]);
      const missing = () => expected.filter((one) => !responses().some((other) => isDeepStrictEqual(one, other)));
      // The browser tells the page first, and us a little later.
      for (let attempt = 0; missing().length > 0; attempt += 1) {
        assert.ok(attempt < ATTEMPTS, `${JSON.stringify(expected)} in ${JSON.stringify(responses())}`);
        await sleep(SOON_MS);
      }
      const all = responses();
      seen.length = 0;
      return all;
    },
    close: () => context.close(),
  };
}

const text = ({ messages }) => messages.at(-1)?.result?.content?.[0]?.text;
const progress = ({ messages }) =>
  messages.filter(({ method }) => method === 'notifications/progress').map(({ params }) => params.progress);

async function refused(page, url, status) {
  for (const attempt of [() => page.run('modern', url, 'tally'), () => page.run('initialize', url)]) {
    const told = await attempt();
    assert.match(told.failed ?? JSON.stringify(told), /TypeError/);
    const network = await page.seen(['OPTIONS', status]);
    assert.ok(!network.some(([method]) => method === 'POST'), JSON.stringify(network));
  }
}

// Requests that are sent without asking first; they reach the server, which has to stop them by itself.
async function stopped(page, url, status) {
  for (const type of ['text/plain', 'application/x-www-form-urlencoded']) {
    const told = await page.run('withoutAsking', url, type);
    assert.ok(told.opaque, JSON.stringify(told));
    await page.seen(['POST', status]);
  }
}

async function byDefault(browser, port) {
  const url = await serve();
  const app = await open(browser, `http://app.test:${port}`);
  await check('by default a page of another origin is refused', () => refused(app, url, 403));
  await check('by default its requests are stopped when nobody asks first', () => stopped(app, url, 403));
  await app.close();
  const local = await open(browser, `http://localhost:${port}`);
  await check('by default a page of this machine cannot read answers', () => refused(local, url, 405));
  await check('by default its requests have to be of the right type', () => stopped(local, url, 415));
  await local.close();
  await check('no handler was run for them', async () => assert.equal(await tally(url), 1));
}

async function whenAllowed(browser, port) {
  const origin = `http://app.test:${port}`;
  const url = await serve(origin);
  const app = await open(browser, origin);
  await check('an allowed page makes a modern call', async () => {
    const told = await app.run('modern', url, 'tally');
    assert.deepEqual([told.status, told.type, text(told)], [200, 'application/json', '1'], JSON.stringify(told));
    await app.seen(['OPTIONS', 204], ['POST', 200]);
  });
  await check('it reads the stream of a modern call', async () => {
    const told = await app.run('modern', url, 'count', { to: 3 }, { progressToken: 'p' });
    assert.match(told.type, /^text\/event-stream/);
    assert.deepEqual([progress(told), text(told)], [[1, 2, 3], 'counted to 3']);
  });
  await check('its arguments can be headers as well', async () => {
    const headers = { 'mcp-param-region': 'north', 'mcp-param-floor': '3' };
    const told = await app.run('modern', url, 'route', { region: 'north', floor: 3 }, {}, headers);
    assert.equal(text(told), 'north, floor 3', JSON.stringify(told));
  });
  await check('it reads refusals', async () => {
    const told = await app.run('modern', url, 'no-such-tool');
    assert.equal(told.messages[0]?.error?.code, -32602, JSON.stringify(told));
  });
  await legacy(app, url);
  for (const era of ['modern', 'legacy']) {
    await check(`the official client works in it (${era})`, () => official(app, url, era));
  }
  await app.close();
  const other = await open(browser, `http://other.test:${port}`);
  await check('a page of a third origin is refused', () => refused(other, url, 403));
  await check('its requests are stopped when nobody asks first', () => stopped(other, url, 403));
  await other.close();
  await check('a handler was run for the allowed page only', async () => assert.equal(await tally(url), 2));
}

async function legacy(app, url) {
  const told = await app.run('session', url);
  await check('it reads the id of a session', () => {
    assert.equal(told.opened.status, 200);
    assert.match(told.opened.session, /^[\x21-\x7e]{16,}$/);
    assert.equal(told.opened.messages.at(-1).result.protocolVersion, '2025-11-25');
    assert.equal(told.ready.status, 202);
  });
  await check('it reads the stream of a legacy call', () => {
    assert.match(told.counted.type, /^text\/event-stream/);
    assert.deepEqual([progress(told.counted), text(told.counted)], [[1, 2, 3], 'counted to 3']);
  });
  await check('it reads the stream of no request', () => {
    assert.deepEqual([told.changed.status, told.changed.called], [200, 200]);
    assert.equal(told.changed.messages[0]?.method, 'notifications/tools/list_changed');
  });
  await check('it ends the session', async () => {
    assert.ok([200, 202, 204].includes(told.deleted.status), JSON.stringify(told.deleted));
    assert.equal(told.late.status, 404);
    await app.seen(['OPTIONS', 204], ['DELETE', told.deleted.status]);
  });
}

async function official(app, url, era) {
  const told = await app.run('official', url, era);
  assert.equal(told.version === '2026-07-28', era === 'modern');
  assert.ok(told.tools > 0);
  assert.deepEqual([told.asked, told.counted], ['Hello, Ada!', 'counted to 50']);
  assert.ok(told.progress.length > 0, 'no progress');
  assert.equal(typeof told.session === 'string', era === 'legacy');
}

const port = await servePages();
const browser = await chromium.launch({ executablePath, args: FLAGS, chromiumSandbox: false, timeout: STEP_MS });
try {
  await byDefault(browser, port);
  await whenAllowed(browser, port);
} catch (error) {
  await check('everything could be tried', () => Promise.reject(error));
} finally {
  await browser.close();
}
process.exit(allHeld() ? 0 : 1);
