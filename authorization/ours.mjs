// Our client, in programs of its own: logs in, gets more scopes, renews, and shares what it has.
import assert from 'node:assert/strict';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { check } from './checks.mjs';
import { parsed, run } from './programs.mjs';
import { seat } from './person.mjs';
import { HOUR } from './provider.mjs';

// The name of our client, in its source.
const NAME = 'Notes of a test';
const CODE = 'authorization_code';
const RENEWAL = 'refresh_token';
const ROBOT = 'client_credentials';

const soon = () => Math.floor(Date.now() / 1000) + 60;

export async function ours({ signed, bound, opaque, brief, person, programs, folder }) {
  const program = join(programs, 'examples/authorization_client');
  // Somebody at this machine, with credentials of their own.
  const somebody = async (name) => {
    const { env, answer } = await seat(folder, person(name));
    return async (...args) => {
      const more = typeof args.at(-1) === 'object' ? args.pop() : {};
      const { lines, errors } = await run(program, args, { env: { ...env, ...more }, answer });
      const said = lines.map(parsed);
      const failed = said.find(({ error }) => error !== undefined);
      return { texts: said.flatMap(({ text }) => text ?? []), tools: said[0]?.tools, failed, errors };
    };
  };
  const says = async (answer, ...texts) => {
    const told = await answer;
    assert.deepEqual(told.texts, texts, JSON.stringify(told));
    return told;
  };

  const alice = await somebody('alice');
  await check('our client opens a browser, and the answer reaches its listener', async () => {
    const { tools } = await says(alice(signed.url, 'browser', 'whoami'), 'alice: notes:read');
    assert.deepEqual(tools, ['whoami', 'write']);
  });
  await check('what it was given is kept, and nobody is asked again', async () => {
    const before = signed.provider.asked('/token').length;
    await says(alice(signed.url, 'stored', 'whoami'), 'alice: notes:read');
    assert.equal(signed.provider.asked('/token').length, before);
  });
  await check('without a person it says which scopes it lacks', async () => {
    const { failed } = await alice(signed.url, 'stored', 'write:hi');
    assert.equal(failed?.status, 403, JSON.stringify(failed));
  });
  await check('a tool that needs more is called after a second consent', async () => {
    const before = signed.provider.asked('/token', CODE).length;
    await says(alice(signed.url, 'browser', 'write:hi', 'whoami'), 'alice: hi', 'alice: notes:read notes:write');
    assert.equal(signed.provider.asked('/token', CODE).length, before + 1);
  });
  await check('one registration lasts for all of that', () => {
    assert.equal(signed.provider.asked('/reg').filter(({ client }) => client === NAME).length, 1);
  });
  const bob = await somebody('bob');
  await check('somebody else sees other tools', async () => {
    const { tools } = await says(bob(signed.url, 'browser', 'audit'), 'nothing was found');
    assert.deepEqual(tools, ['whoami', 'write', 'audit']);
  });
  await check('what is hidden cannot be called', async () => {
    const { failed } = await alice(signed.url, 'stored', 'audit');
    assert.match(failed?.error ?? '', /audit/);
    assert.notEqual(failed.status, 403);
  });
  await check('a person logs in with a code on another device', async () => {
    await says((await somebody('alice'))(signed.url, 'device', 'whoami'), 'alice: notes:read');
  });
  await check('a person pastes where the browser ended up', async () => {
    await says((await somebody('bob'))(signed.url, 'paste', 'whoami'), 'bob: notes:read');
  });
  await check('a program that nobody sits at asks as itself', async () => {
    const robot = (await somebody('nobody'))(signed.url, 'robot', 'whoami', 'write:hi', { ISSUER: signed.provider.issuer });
    await says(robot, 'robot: notes:read', 'robot: hi');
    assert.ok(signed.provider.asked('/token', ROBOT).length > 0);
  });
  await check('a server that names another issuer gets nothing of a program that nobody sits at', async () => {
    const before = bound.provider.asked('/token').length;
    const { failed } = await (await somebody('nobody'))(bound.url, 'robot', { ISSUER: signed.provider.issuer });
    assert.equal(failed?.kind, 'IssuerChanged', JSON.stringify(failed));
    assert.equal(bound.provider.asked('/token').length, before);
  });
  await check('a program of a platform hands in the token of that platform', async () => {
    const claims = { iss: bound.provider.issuer, sub: 'a pod', aud: signed.provider.issuer, exp: soon() };
    signed.provider.trust(bound.provider.issuer, bound.provider.publicKey);
    const ASSERTION = await bound.provider.sign(claims);
    const pod = await somebody('nobody');
    const ISSUER = signed.provider.issuer;
    await says(pod(signed.url, 'workload', 'whoami', { ASSERTION, ISSUER }), 'a pod: notes:read');
  });
  await check('the login at a company is one at the server', async () => {
    const IDP = bound.provider.issuer;
    const ASSERTION = await bound.provider.sign({ iss: IDP, sub: 'bob', aud: 'desk-idp', exp: soon() }, { typ: 'JWT' });
    const desk = await somebody('nobody');
    const ISSUER = signed.provider.issuer;
    await says(desk(signed.url, 'enterprise', 'audit', { IDP, ASSERTION, ISSUER }), 'nothing was found');
  });
  await check('where tokens have to be bound to a key, they are', async () => {
    const carol = await somebody('alice');
    await says(carol(bound.url, 'browser', 'whoami', 'write:hi'), 'alice: notes:read', 'alice: hi');
    await says(carol(bound.url, 'stored', 'write:again'), 'alice: again');
  });
  await check('opaque tokens are none of its business', async () => {
    await says((await somebody('alice'))(opaque.url, 'browser', 'whoami'), 'alice: notes:read');
  });
  await renewal(await somebody('alice'), brief, says);
}

async function renewal(alice, { url, provider, tokenSeconds }, says) {
  const renewals = () => provider.asked('/token', RENEWAL);
  const registrations = () => provider.asked('/reg').filter(({ client }) => client === NAME);
  await check('tokens that have run out are renewed, and nobody is logged out by it', async () => {
    await says(alice(url, 'browser', 'whoami'), 'alice: notes:read');
    for (let round = 0; round < 2; round += 1) {
      await sleep(tokenSeconds * 1000);
      await says(alice(url, 'stored', 'whoami'), 'alice: notes:read');
    }
    const answers = renewals().map(({ status }) => status);
    assert.ok(answers.length >= 2 && answers.every((status) => status === 200), JSON.stringify(answers));
  });
  await check('a token that has run out is renewed once for four processes', async () => {
    await sleep(tokenSeconds * 1000);
    // However slow this machine is.
    provider.tokensLast(HOUR);
    const before = renewals().length;
    const four = await Promise.all(Array.from({ length: 4 }, () => alice(url, 'stored', 'whoami')));
    assert.deepEqual(four.map(({ texts }) => texts[0]), Array(4).fill('alice: notes:read'), JSON.stringify(four));
    assert.deepEqual(renewals().slice(before).map(({ status }) => status), [200]);
  });
  await check('where clients are bound to their first scopes, it registers anew for more', async () => {
    assert.equal(registrations().length, 1);
    provider.tokensLast(tokenSeconds);
    await says(alice(url, 'browser', 'write:hi'), 'alice: hi');
    assert.equal(registrations().length, 2);
  });
  await check('what was withdrawn at the provider needs a new login', async () => {
    await provider.withdraw();
    await sleep(tokenSeconds * 1000);
    const { failed } = await alice(url, 'stored', 'whoami');
    assert.equal(failed?.status, 401, JSON.stringify(failed));
    const { texts } = await alice(url, 'browser', 'whoami');
    assert.match(texts[0] ?? '', /^alice: notes:read/);
  });
}
