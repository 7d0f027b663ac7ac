// One JSON line per check on stdout, and an exit code that says whether all of them held.
import assert from 'node:assert/strict';

export { assert };

// A peer that stops answering must fail the run, not hang it.
const TOTAL_MS = 90_000;

export class Report {
  #failed = 0;
  #passed = 0;

  constructor() {
    setTimeout(() => {
      this.#print({ check: 'finished in time', ok: false, error: `still running after ${TOTAL_MS} ms` });
      process.exit(1);
    }, TOTAL_MS).unref();
  }

  async check(name, body) {
    try {
      const value = await body();
      this.#passed += 1;
      this.#print({ check: name, ok: true });
      return value;
    } catch (error) {
      this.#failed += 1;
      this.#print({ check: name, ok: false, error: String(error?.message ?? error) });
      return undefined;
    }
  }

  finish() {
    // No check at all is a broken harness, which must not look like success.
    process.exit(this.#failed === 0 && this.#passed > 0 ? 0 : 1);
  }

  #print(line) {
    process.stdout.write(`${JSON.stringify(line)}\n`);
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
    return error;
  }
  assert.fail(`expected a refusal, got ${JSON.stringify(result)}`);
}

// `<era> -- <command> [arguments…]`, as every client here is called.
export function commandLine(eras) {
  const [era, dashes, command, ...args] = process.argv.slice(2);
  if (!eras.includes(era) || dashes !== '--' || command === undefined) {
    process.stderr.write(`usage: ${process.argv[1]} ${eras.join('|')} -- COMMAND [ARGUMENTS...]\n`);
    process.exit(2);
  }
  return { era, command, args };
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
