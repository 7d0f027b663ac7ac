// Protected servers, a real provider, and a person in a browser.
//   node run.mjs CHROMIUM PROGRAMS PYTHON CLIENT.PY
// Prints one JSON line per check, and exits with 0 only when there were checks and all of them held.
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { allHeld, check, giveUpAfter } from './checks.mjs';
import { others } from './others.mjs';
import { ours } from './ours.mjs';
import { pages, servePages } from './pages.mjs';
import { launch, visit } from './person.mjs';
import { program } from './program.mjs';
import { serve } from './programs.mjs';
import { SECRETS, startProvider } from './provider.mjs';
import { refusals } from './refusals.mjs';
import { servers } from './servers.mjs';

const TOTAL_MS = 230_000;

const [, , chromium, programs, ...python] = process.argv;
if (python.length !== 2) {
  process.stderr.write(`usage: ${process.argv[1]} CHROMIUM PROGRAMS PYTHON CLIENT.PY\n`);
  process.exit(2);
}
giveUpAfter(TOTAL_MS);

const port = await servePages();

// A provider and a server that takes its tokens.
async function place(tokens, profile = {}) {
  const provider = await startProvider(profile);
  const args = [provider.issuer, tokens, `http://app.test:${port}`];
  const url = await serve(join(programs, 'examples/authorization_server'), args, { NOTES_SECRET: SECRETS.notes });
  return { url, provider, ...profile };
}

const visits = [];
const folder = await mkdtemp(join(tmpdir(), 'toolwire-authorization-'));
const browser = await launch(chromium);
const person = (name) => (asked) => visits[visits.push(visit(browser, { name, ...asked })) - 1];

// Providers of all kinds, so that nobody else is counted.
async function world() {
  const [signed, bound, opaque, brief, offline] = await Promise.all([
    place('signed'),
    place('bound', { nonces: true }),
    place('opaque', { opaque: true }),
    place('signed', { tokenSeconds: 5, strict: true }),
    place('signed', { tokenSeconds: 1, offline: true }),
  ]);
  return { signed, bound, opaque, brief, offline, person, browser, port, programs, python, folder };
}

try {
  const first = await world();
  await refusals(first);
  await pages(first);
  await others(first);
  await servers(first);
  // Both mostly wait for tokens to run out.
  await Promise.all([ours(first), program(await world())]);
} catch (error) {
  await check('everything could be tried', () => Promise.reject(error));
} finally {
  // A program may be done with its login before the browser is.
  await Promise.allSettled(visits);
  await browser.close();
  await rm(folder, { recursive: true, force: true });
}
process.exit(allHeld() ? 0 : 1);
