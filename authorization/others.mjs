// Clients of other makers log in at the provider, and call our server.
import assert from 'node:assert/strict';
import { generateKeyPair } from 'jose';
import { check } from './checks.mjs';
import { parsed, run } from './programs.mjs';
import { fetchWith, logIn, robotToken } from './generic.mjs';
import { officialCalls } from './official.mjs';
import { bearer, call } from './request.mjs';

export async function others({ signed, bound, opaque, person, python }) {
  await check('oauth4webapi finds the issuer, registers, logs in and calls a scoped tool', () =>
    generic(signed.url, person('alice')),
  );
  await check('a token without the scope is told which ones the tool needs', async () => {
    const token = await logIn(signed.url, { person: person('alice'), scope: 'notes:read' });
    const told = await call(signed.url, 'write', { args: { text: 'hi' }, headers: bearer(token.access_token) });
    assert.equal(told.status, 403);
    assert.match(told.challenge, /error="insufficient_scope"/);
    assert.match(told.challenge, /scope="notes:read notes:write"/);
  });
  await check('a token that is bound to a key is taken with its proof', async () => {
    const key = await generateKeyPair('ES256', { extractable: true });
    await generic(signed.url, person('alice'), key);
  });
  await check('where every token has to be bound, proofs carry the nonce of the server', async () => {
    const key = await generateKeyPair('ES256', { extractable: true });
    await generic(bound.url, person('alice'), key);
  });
  await check('an opaque token is asked about', () => generic(opaque.url, person('alice')));
  await check('a program that nobody sits at calls a scoped tool', async () => {
    const token = await robotToken(signed.url, 'notes:read notes:write');
    const told = await call(signed.url, 'whoami', { headers: bearer(token.access_token) });
    assert.equal(told.text, 'robot: notes:read notes:write', JSON.stringify(told));
  });
  for (const era of ['modern', 'legacy']) {
    await check(`the official TypeScript client logs in and calls a tool (${era})`, async () => {
      const said = await officialCalls(signed.url, { person: person('alice'), era, calls: [['whoami', {}]] });
      assert.match(said[0], /^alice: notes:read/);
    });
    await check(`it gets more scopes when a tool needs them (${era})`, async () => {
      const calls = [['write', { text: 'hi' }]];
      assert.deepEqual(await officialCalls(signed.url, { person: person('alice'), era, calls }), ['alice: hi']);
    });
  }
  await check('the official TypeScript client uses a token that is bound to its key', async () => {
    const said = await officialCalls(bound.url, { person: person('bob'), era: 'modern', calls: [['audit', {}]], bound: true });
    assert.deepEqual(said, ['nothing was found']);
  });
  await check('the official Python client logs in, gets more scopes, and calls a scoped tool', async () => {
    const [program, script] = python;
    const answer = (line) => parsed(line).open && person('alice')({ url: parsed(line).open });
    const { lines, errors } = await run(program, [script, signed.url, 'whoami', 'write:hi'], { answer });
    const said = lines.flatMap((line) => parsed(line).text?.split(' ')[0] ?? []);
    assert.deepEqual(said, ['alice:', 'alice:'], errors.join('\n'));
  });
}

async function generic(url, person, key) {
  const token = await logIn(url, { person, scope: 'notes:read notes:write', key });
  assert.equal(token.token_type, key ? 'dpop' : 'bearer');
  const told = await call(url, 'write', { args: { text: 'hi' }, fetch: fetchWith(token) });
  assert.deepEqual([told.status, told.text], [200, 'alice: hi'], JSON.stringify(told));
}
