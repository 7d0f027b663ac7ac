// What is checked on HTTP besides the walk: questions from the server, cancellation, messages that belong to no
// request, streams that are closed and come back, and sessions. `peer` has, besides what `walk.mjs` needs:
//   url        where the server is
//   transport  the SDK's transport
//   requests   every HTTP request that was made so far
//   cutStreams cuts the streams that belong to no request
//   changes    the notifications so far that the list of tools has changed
import { setTimeout as sleep } from 'node:timers/promises';
import { assert } from './check.mjs';

const SOON_MS = 50;
const ATTEMPTS = 200;

// The handlers of a client that knows its name and the capital of France.
export const ANSWERS = {
  elicit: async () => ({ action: 'accept', content: { name: 'Ada' } }),
  sample: async () => ({ role: 'assistant', model: 'interop', content: { type: 'text', text: 'Paris' } }),
};
export const CAPABILITIES = { elicitation: { form: {} }, sampling: {} };

export async function livelyWalk(report, peer) {
  const said = async (name, options) => {
    const result = await peer.callTool({ name, arguments: {} }, options);
    assert.ok(!result.isError, JSON.stringify(result));
    return result.content[0].text;
  };
  await report.check('elicitation', async () => assert.equal(await said('ask'), 'Hello, Ada!'));
  await report.check('sampling', async () => assert.equal(await said('think'), 'Paris'));
  await report.check('arguments that are headers as well', () => mirrored(peer));
  await report.check('a call is cancelled', () => cancellation(peer, said));
  await report.check('a change is told', () => change(peer, said));
  if (peer.how === 'http') await report.check('a session in the legacy era only', () => session(peer));
  if (peer.how === 'http' && !peer.modern) {
    await report.check('a stream that was closed is resumed', () => resumption(peer, said));
    await report.check('the stream of no request is resumed', () => cut(peer, said));
    await report.check('no stream is asked for again and again', () => patience(peer));
    await report.check('the session ends', () => termination(peer));
  }
}

async function eventually(what, holds) {
  for (let attempt = 0; attempt < ATTEMPTS; attempt += 1) {
    if (await holds()) return;
    await sleep(SOON_MS);
  }
  assert.fail(`${what} did not happen`);
}

// In the modern era a server refuses the call unless the headers are there and say the same.
async function mirrored({ callTool, client, modern, requests }) {
  // What a header may have is known from the list.
  await client.listTools();
  for (const region of ['north', 'Zürich ☃']) {
    const result = await callTool({ name: 'route', arguments: { region, floor: -3 } });
    assert.equal(result.content[0].text, `${region}, floor -3`);
    const { headers } = requests.findLast(({ method }) => method === 'POST');
    assert.deepEqual([headers.has('mcp-param-region'), headers.get('mcp-param-floor')], [modern, modern ? '-3' : null]);
  }
}

async function cancellation({ callTool }, said) {
  const before = Number(await said('cancelled'));
  const abort = new AbortController();
  // Progress says that the tool is at work.
  const call = callTool(
    { name: 'wait', arguments: {} },
    { signal: abort.signal, onprogress: () => abort.abort('the caller changed its mind') },
  );
  await assert.rejects(call);
  await eventually('the cancellation', async () => Number(await said('cancelled')) === before + 1);
}

async function change({ client, modern, changes }, said) {
  const subscription = modern ? await client.listen({ toolsListChanged: true }) : undefined;
  changes.length = 0;
  // A legacy stream for messages of this kind is opened in its own time, and what is said before is not kept.
  await eventually('the notification', async () => {
    await said('change');
    await sleep(SOON_MS);
    return changes.length > 0;
  });
  await subscription?.close();
}

async function session({ modern, transport, requests }) {
  const named = requests.filter(({ headers }) => headers.has('mcp-session-id'));
  assert.equal(typeof transport.sessionId === 'string', !modern);
  assert.equal(named.length > 0, !modern);
}

async function resumption({ requests }, said) {
  const before = resumed(requests).length;
  assert.equal(await said('nap'), 'rested');
  assert.ok(resumed(requests).length > before, 'the client did not come back');
}

// The client does not hear of what is said while its stream is cut, and has to be told when it comes back.
async function cut({ requests, changes, cutStreams }, said) {
  // What was said before may still be under way.
  await sleep(SOON_MS);
  changes.length = 0;
  const before = resumed(requests).length;
  cutStreams();
  await said('change');
  await eventually('the notification', async () => changes.length > 0);
  assert.equal(changes.length, 1);
  assert.ok(resumed(requests).length > before, 'the client did not come back');
}

// The call that was cancelled some seconds ago has no answer, and a client that is not told would wait for it.
async function patience({ requests }) {
  const ids = resumed(requests);
  assert.equal(new Set(ids).size, ids.length, ids.join(' '));
}

// Where the client has taken up streams again.
const resumed = (requests) =>
  requests
    .filter(({ method, headers }) => method === 'GET' && headers.has('last-event-id'))
    .map(({ headers }) => headers.get('last-event-id'));

async function termination({ transport, url }) {
  const { sessionId } = transport;
  await transport.terminateSession();
  const response = await fetch(url, {
    method: 'POST',
    headers: {
      'content-type': 'application/json',
      accept: 'application/json, text/event-stream',
      'mcp-protocol-version': '2025-11-25',
      'mcp-session-id': sessionId,
    },
    body: JSON.stringify({ jsonrpc: '2.0', id: 'late', method: 'ping' }),
  });
  await response.body?.cancel();
  assert.equal(response.status, 404);
}
