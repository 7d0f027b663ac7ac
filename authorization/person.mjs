// A person in a browser, who logs in at the provider, and consents.
import { once } from 'node:events';
import { chmod, mkdtemp, writeFile } from 'node:fs/promises';
import { createServer } from 'node:http';
import { join } from 'node:path';
import { chromium } from 'playwright-core';
import { parsed } from './programs.mjs';
import { SECRETS } from './provider.mjs';

const STEP_MS = 20_000;
// A login has at most four forms: a code, its confirmation, a name, a consent.
const FORMS = 6;
const FLAGS = [
  '--disable-gpu',
  '--disable-quic',
  '--no-first-run',
  '--disable-background-networking',
  '--disable-component-update',
  '--disable-sync',
  // Nothing leaves this machine, not even for a font; and pages here can be of two other origins.
  '--host-resolver-rules=MAP app.test 127.0.0.1,MAP other.test 127.0.0.1,MAP * ~NOTFOUND,EXCLUDE 127.0.0.1',
];

export const launch = (executablePath) =>
  chromium.launch({ executablePath, args: FLAGS, chromiumSandbox: false, timeout: STEP_MS });

// Opens a page as somebody who is not logged in yet, fills in what is asked for, and returns where the browser ends up,
// whether anybody is there or not.
export async function visit(browser, { url, name, code }) {
  const context = await browser.newContext();
  const page = await context.newPage();
  page.setDefaultTimeout(STEP_MS);
  let where = url;
  page.on('request', (request) => {
    if (request.isNavigationRequest() && request.frame() === page.mainFrame()) where = request.url();
  });
  try {
    // Where nobody listens, the address is all that is wanted.
    await page.goto(url).catch((error) => where === url && Promise.reject(error));
    for (let form = 0; form < FORMS && (await page.locator('form').count()) > 0; form += 1) {
      await fill(page, 'user_code', code);
      await fill(page, 'login', name);
      await fill(page, 'password', 'any');
      const moved = page.waitForNavigation().catch(() => {});
      await page.locator('button[type=submit]').first().click();
      await moved;
    }
    return where;
  } finally {
    await context.close();
  }
}

async function fill(page, field, text) {
  const input = page.locator(`input[name=${field}]:visible`);
  if (text !== undefined && (await input.count()) > 0) await input.fill(text);
}

// A place of its own for what a program of ours keeps, with this person before it: how they are reached, and what they
// do with a line that asks for somebody.
export async function seat(folder, person) {
  const home = await mkdtemp(join(folder, 'home-'));
  const BROWSER = await browserProgram(home, (url) => person({ url }));
  const env = { TOOLWIRE_AUTH_DIR: join(home, 'auth'), BROWSER, ROBOT_SECRET: SECRETS.robot };
  const answer = async (line) => {
    const { open, paste, device } = parsed(line);
    if (paste) return person({ url: open });
    if (device) await person({ url: device.page, code: device.code });
  };
  return { home, env, answer };
}

// A program that can be `$BROWSER`: it hands its argument to `open`.
async function browserProgram(folder, open) {
  const door = createServer(async (request, response) => {
    let url = '';
    for await (const part of request.setEncoding('utf8')) url += part;
    response.end();
    open(url).catch((error) => process.stderr.write(`${error}\n`));
  });
  door.listen(0, '127.0.0.1');
  await once(door, 'listening');
  door.unref();
  const send = `fetch('http://127.0.0.1:${door.address().port}', { method: 'POST', body: process.argv[1] })`;
  const program = join(folder, 'browser');
  await writeFile(program, `#!/bin/sh\nexec '${process.execPath}' -e "${send}" -- "$1"\n`);
  await chmod(program, 0o700);
  return program;
}
