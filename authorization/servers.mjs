// Servers of other makers, and the program that logs in to them.
import assert from 'node:assert/strict';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { check } from './checks.mjs';
import { serve } from './programs.mjs';
import { terminal } from './terminal.mjs';

const here = dirname(fileURLToPath(import.meta.url));
const node = (script) => [process.execPath, join(here, script)];

export async function servers(world) {
  const [python, client] = world.python;
  const theirs = [python, join(dirname(client), 'theirs.py')];
  const { issuer } = world.signed.provider;
  const at = terminal(world);
  const all = [
    ['the official TypeScript SDK v1', node('theirs-v1.mjs'), issuer],
    ['the official TypeScript SDK v2', node('theirs-v2.mjs'), issuer],
    ['the official Python SDK', theirs, issuer],
    ['the official TypeScript SDK v1, which is its own issuer', node('theirs-v1.mjs'), 'own'],
    ['the official Python SDK, which is its own issuer', theirs, 'own'],
  ];
  for (const [name, [program, script], who] of all) {
    await check(`toolwire logs in to a server of ${name}, and calls a tool`, async () => {
      const url = await serve(program, [script, who]);
      const { toolwire } = await at('alice');
      const before = await toolwire('call', url, 'whoami');
      assert.deepEqual([before.code, before.error?.code], [3, 'auth-needed'], JSON.stringify(before));
      const login = await toolwire('login', url);
      assert.equal(login.code, 0, login.errors.join('\n'));
      assert.deepEqual(login.told.scopes.filter((scope) => scope !== 'offline_access'), ['notes:read']);
      assert.equal(new URL(login.told.issuer).origin, who === 'own' ? new URL(url).origin : who);
      const subject = who === 'own' ? 'somebody' : 'alice';
      const said = await toolwire('call', url, 'whoami');
      assert.match(said.text ?? '', new RegExp(`^${subject}: notes:read`), JSON.stringify(said));
      const out = await toolwire('logout', url);
      assert.equal(out.code, 0, out.errors.join('\n'));
      assert.equal((await toolwire('call', url, 'whoami')).error?.code, 'auth-needed');
    });
  }
}
