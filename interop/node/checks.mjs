// Counting checks: one JSON line for each, and whether all of them held. Shared with `browser/` and `authorization/`.
let held = 0;
let failed = 0;
const print = (line) => process.stdout.write(`${JSON.stringify(line)}\n`);

// Whether the run was good so far. No check at all is a broken harness, which must not look like success.
export const allHeld = () => failed === 0 && held > 0;

// Runs a check, and returns what it returns; nothing if it failed.
export async function check(name, body) {
  try {
    const value = await body();
    held += 1;
    print({ check: name, ok: true });
    return value;
  } catch (error) {
    failed += 1;
    print({ check: name, ok: false, error: String(error?.message ?? error) });
    return undefined;
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
