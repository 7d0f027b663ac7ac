// The programs that the checks are about.
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { createInterface } from 'node:readline';

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
