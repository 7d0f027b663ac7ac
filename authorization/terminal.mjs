// Somebody at a terminal, with logins of their own, and a browser.
import { join } from 'node:path';
import { seat } from './person.mjs';
import { parsed, run } from './programs.mjs';

// `at(name)` gives `toolwire(...words)`, everything that it has printed, and where its logins are.
export const terminal = ({ programs, folder, person }) => async (name) => {
  const { home, env, answer } = await seat(folder, person(name));
  const printed = [];
  const toolwire = async (...args) => {
    const { code, lines, errors } = await run(join(programs, 'toolwire'), ['--json', ...args], { env, answer });
    printed.push(...lines, ...errors);
    const told = parsed(lines.join('\n'));
    return { code, told, text: told.content?.[0]?.text, error: parsed(errors.at(-1) ?? '').error, errors };
  };
  return { toolwire, printed, credentials: join(home, 'auth/credentials') };
};
