// Checks, and the programs that they are about.
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { createInterface } from 'node:readline';

let held = 0;
let failed = 0;
const print = (line) => process.stdout.write(`${JSON.stringify(line)}\n`);

// Whether the run was good so far: no check at all is none.
export const allHeld = () => failed === 0 && held > 0;

export async function check(name, body) {
  try {
    await body();
    held += 1;
    print({ check: name, ok: true });
  } catch (error) {
    failed += 1;
    print({ check: name, ok: false, error: String(error?.message ?? error) });
  }
}

// What hangs must fail the run.
export function giveUpAfter(milliseconds) {
  const late = () => {
    print({ check: 'finished in time', ok: false, error: `still running after ${milliseconds} ms` });
    process.exit(1);
  };
  setTimeout(late, milliseconds).unref();
}

const children = new Set();
process.on('exit', () => children.forEach((child) => child.kill('SIGKILL')));

function start(program, args, env, stdin) {
  const child = spawn(program, args, { stdio: [stdin, 'pipe', 'pipe'], env: { ...process.env, ...env } });
  children.add(child);
  child.once('exit', () => children.delete(child));
  return child;
}

// Starts a server and returns the first line that it prints, its URL.
export async function serve(program, args, env) {
  const child = start(program, args, env, 'ignore');
  child.stderr.pipe(process.stderr);
  const ended = () => assert.fail(`${program} ended before it was ready`);
  const [url] = await Promise.race([once(createInterface(child.stdout), 'line'), once(child, 'exit').then(ended)]);
  return url;
}

// Runs a program to its end. `answer` is given each line that it prints, and what it returns is typed in.
export async function run(program, args, { env, answer = () => {} } = {}) {
  const child = start(program, args, env, 'pipe');
  child.stdin.on('error', () => {});
  const exit = once(child, 'close');
  const read = async (stream) => {
    const lines = [];
    for await (const line of createInterface(stream)) {
      lines.push(line);
      const typed = await answer(line);
      if (typed !== undefined) child.stdin.write(`${typed}\n`);
    }
    return lines;
  };
  const [lines, errors] = await Promise.all([read(child.stdout), read(child.stderr)]);
  const [code] = await exit;
  return { code, lines, errors };
}

// What a line is if it is JSON, and otherwise nothing.
export function parsed(line) {
  try {
    return JSON.parse(line);
  } catch {
    return {};
  }
}
