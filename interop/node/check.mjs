// One JSON line per check on stdout, and an exit code that says whether all of them held.
import assert from 'node:assert/strict';
import { allHeld, check, giveUpAfter } from './checks.mjs';

export { assert };

// A peer that stops answering must fail the run, not hang it.
const TOTAL_MS = 90_000;

export class Report {
  check = check;

  constructor() {
    giveUpAfter(TOTAL_MS);
  }

  finish() {
    process.exit(allHeld() ? 0 : 1);
  }
}

// Codes the SDKs give to their own troubles, which no server sends here: connection closed and timed out.
const NOT_FROM_THE_PEER = [-32000, -32001];

// The error a request is refused with; fails when it is answered, or when nobody is there to refuse.
export async function refusal(promise) {
  let result;
  try {
    result = await promise;
  } catch (error) {
    if (NOT_FROM_THE_PEER.includes(error.code)) throw error;
    // TypeScript v2 looks into the body of a refusal by HTTP only when the status is 400.
    return error.data?.text === undefined ? error : JSON.parse(error.data.text).error;
  }
  assert.fail(`expected a refusal, got ${JSON.stringify(result)}`);
}

// `ERA -- COMMAND [ARGUMENTS…]` or `ERA http|stateless|sse URL`, as every client here is called.
export function commandLine(eras) {
  const [era, how, target, ...args] = process.argv.slice(2);
  if (!eras.includes(era) || !['--', 'http', 'stateless', 'sse'].includes(how) || target === undefined) {
    const program = `${process.argv[1]} ${eras.join('|')}`;
    process.stderr.write(`usage: ${program} -- COMMAND [ARGUMENTS...]\n       ${program} http|stateless|sse URL\n`);
    process.exit(2);
  }
  return how === '--' ? { era, how: 'stdio', command: target, args } : { era, how, url: new URL(target) };
}

// The transport for what the command line names, out of the classes of an SDK. For HTTP also the list that every
// request is added to, and a way to cut the streams that belong to no request. Streams that break are taken up again
// without much waiting.
export function connection({ how, command, args, url }, { Stdio, Http, Sse }) {
  const requests = [];
  const streams = [];
  const fetch = async (input, init) => {
    const method = init?.method ?? 'GET';
    requests.push({ method, headers: new Headers(init?.headers) });
    const response = await globalThis.fetch(input, init);
    if (method !== 'GET' || response.body === null) return response;
    let cut;
    const through = new TransformStream({ start: (stream) => void (cut = () => stream.error(new Error('cut'))) });
    streams.push(() => cut());
    return new Response(response.body.pipeThrough(through), response);
  };
  const cutStreams = () => streams.splice(0).forEach((cut) => cut());
  const reconnectionOptions = {
    initialReconnectionDelay: 100,
    maxReconnectionDelay: 1000,
    reconnectionDelayGrowFactor: 2,
    maxRetries: 10,
  };
  const make = {
    stdio: () => new Stdio({ command, args }),
    http: () => new Http(url, { fetch, reconnectionOptions }),
    stateless: () => new Http(url, { fetch, reconnectionOptions }),
    sse: () => new Sse(url, { fetch }),
  };
  return { how, url, requests, cutStreams, transport: make[how]() };
}

// Connects and returns the list that every arriving message is added to.
export async function connectWatched(client, transport) {
  const wire = [];
  await client.connect(transport);
  const deliver = transport.onmessage;
  transport.onmessage = (message, extra) => {
    wire.push(message);
    deliver(message, extra);
  };
  return wire;
}
