// The program `toolwire`, as somebody at a terminal uses it.
import assert from 'node:assert/strict';
import { readdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { check } from './checks.mjs';
import { HOUR } from './provider.mjs';
import { terminal } from './terminal.mjs';

export async function program(world) {
  const { signed, bound, opaque, brief, offline } = world;
  const at = terminal(world);
  const same = (told, key, expected) => assert.deepEqual(told[key], expected, JSON.stringify(told));
  const alice = await at('alice');
  const { toolwire } = alice;
  const { url, provider } = signed;

  await check('without a login the program ends with 3, and says how to log in', async () => {
    const told = await toolwire('call', url, 'whoami');
    assert.deepEqual([told.code, told.error?.code], [3, 'auth-needed'], JSON.stringify(told));
    assert.match(told.error.hint, new RegExp(`toolwire login ${url}`));
  });
  await check('auth explain goes the way to a login, and registers nothing', async () => {
    const before = provider.asked('/reg').length;
    const { code, told } = await toolwire('auth', 'explain', url);
    assert.deepEqual([code, told.outcome?.next], [0, 'register'], JSON.stringify(told));
    assert.equal(provider.asked('/reg').length, before);
  });
  await check('toolwire login opens the browser, and says what was given', async () => {
    const { code, told } = await toolwire('login', url);
    assert.equal(code, 0, JSON.stringify(told));
    const { issuer, scopes, renewable, expired } = told;
    assert.deepEqual([issuer, scopes, renewable, expired], [provider.issuer, ['notes:read'], true, false]);
  });
  await check('the other commands use the login', async () => {
    same(await toolwire('call', url, 'whoami'), 'text', 'alice: notes:read');
  });
  await check('a missing scope ends with 3, and says how to get it', async () => {
    const told = await toolwire('call', url, 'write', 'text=hi');
    assert.deepEqual([told.code, told.error?.code], [3, 'forbidden'], JSON.stringify(told));
    assert.match(told.error.hint, /toolwire login .* --scope '?notes:write/);
  });
  await check('a login with more scopes keeps those that were there', async () => {
    const { told } = await toolwire('login', url, '--scope', 'notes:write');
    same(told, 'scopes', ['notes:read', 'notes:write']);
    same(await toolwire('call', url, 'write', 'text=hi'), 'text', 'alice: hi');
  });
  await check('the program shows somebody else other tools', async () => {
    const bob = await at('bob');
    await bob.toolwire('login', url);
    const tools = async (who) => (await who.toolwire('tools', url)).told.map(({ name }) => name);
    assert.deepEqual(await tools(bob), ['whoami', 'write', 'audit']);
    assert.deepEqual(await tools(alice), ['whoami', 'write']);
  });
  for (const [way, place] of [['--device', signed], ['--paste', opaque], ['--consent', bound]]) {
    await check(`toolwire login ${way}`, async () => {
      const other = await at('bob');
      const { code, told, errors } = await other.toolwire('login', place.url, way);
      assert.equal(code, 0, errors.join('\n'));
      same(told, 'boundToKey', place === bound);
      same(await other.toolwire('call', place.url, 'whoami'), 'text', 'bob: notes:read');
    });
  }
  await renewal(alice, brief);
  await consent(await at('alice'), offline);
  await sockets(alice, signed);
  await logout(alice, signed);
  await check('where the issuer knows every token, all of them are revoked', async () => {
    await toolwire('login', opaque.url);
    const { told } = await toolwire('logout', opaque.url);
    assert.equal(told.loggedOut?.[0]?.revoked, 'yes', JSON.stringify(told));
  });
}

async function consent({ toolwire }, { url, provider, tokenSeconds }) {
  await check('a login that cannot be renewed without consent says so, and can be with it', async () => {
    const without = await toolwire('login', url);
    assert.deepEqual([without.code, without.told.renewable], [0, false], JSON.stringify(without.told));
    assert.match(without.told.hint ?? '', /toolwire login .* --consent/);
    const { told } = await toolwire('login', url, '--consent');
    assert.equal(told.renewable, true, JSON.stringify(told));
    provider.tokensLast(HOUR);
    await sleep(1000 * (tokenSeconds + 1));
    assert.equal((await toolwire('call', url, 'whoami')).text, 'alice: notes:read');
    assert.ok(provider.asked('/token', 'refresh_token').length > 0);
  });
}

async function sockets({ toolwire }, { url }) {
  await check('a WebSocket is opened with the login of its server', async () => {
    const socket = url.replace('http:', 'ws:');
    const told = await toolwire('call', socket, 'whoami');
    assert.match(told.text ?? '', /^alice: notes:read/, JSON.stringify(told));
  });
}

async function renewal({ toolwire }, { url, provider, tokenSeconds }) {
  const renewals = () => provider.asked('/token', 'refresh_token').length;
  await check('four commands at once renew a login that has run out once', async () => {
    await toolwire('login', url);
    await sleep(tokenSeconds * 1000);
    // However slow this machine is.
    provider.tokensLast(HOUR);
    const before = renewals();
    const four = await Promise.all(Array.from({ length: 4 }, () => toolwire('call', url, 'whoami')));
    assert.deepEqual(four.map(({ text }) => text), Array(4).fill('alice: notes:read'), JSON.stringify(four));
    assert.equal(renewals(), before + 1);
  });
  await check('a login that was withdrawn is over, and the next one works', async () => {
    provider.tokensLast(tokenSeconds);
    await toolwire('login', url);
    await provider.withdraw();
    await sleep(tokenSeconds * 1000);
    const told = await toolwire('call', url, 'whoami');
    assert.deepEqual([told.code, told.error?.hint?.includes('toolwire login')], [3, true], JSON.stringify(told));
    assert.equal((await toolwire('login', url)).code, 0);
    assert.equal((await toolwire('call', url, 'whoami')).text, 'alice: notes:read');
  });
}

async function logout({ toolwire, printed, credentials }, { url, provider }) {
  await check('auth status shows the logins, and nothing that was printed has a token in it', async () => {
    const { told } = await toolwire('auth', 'status');
    assert.ok(told.logins?.some(({ server, renewable }) => server === url && renewable), JSON.stringify(told));
    const all = printed.join('\n');
    for (const file of await readdir(credentials)) {
      const { token } = JSON.parse(await readFile(join(credentials, file), 'utf8'));
      for (const secret of [token.access, token.refresh]) assert.ok(secret && !all.includes(secret), file);
    }
  });
  await check('toolwire logout revokes what renews the login, and forgets it', async () => {
    const { told } = await toolwire('logout', url);
    // Signed tokens are verified without asking, so it revokes what renews them.
    assert.equal(told.loggedOut?.[0]?.revoked, 'renewal', JSON.stringify(told));
    assert.equal(provider.asked('/token/revocation')[0]?.status, 200);
    assert.equal((await toolwire('call', url, 'whoami')).error?.code, 'auth-needed');
    assert.equal((await toolwire('auth', 'status', url)).code, 3);
  });
}
