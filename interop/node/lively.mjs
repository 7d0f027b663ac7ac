// The tools that servers have on HTTP besides the shared catalogue (see ../README.md). `sdk` hides where the SDKs
// differ, besides what `catalogue.mjs` needs:
//   elicit    (context, params, then) => asks the user and returns what `then` makes of the answer
//   sample    (context, params, then) => the same with the client's model
//   signal    (context) => the signal that the request was cancelled
//   hangUp    (context) => closes the stream of the request, and says whether it could
//   drop      (context) => closes the stream that belongs to no request
//   changed   (server) => says on the stream that belongs to no request that the list of tools has changed
//   sessions  () => how many sessions there are
import { setTimeout as sleep } from 'node:timers/promises';
import { z } from 'zod';

const NAP_MS = 100;
const QUESTION = {
  message: 'What is your name?',
  requestedSchema: { type: 'object', properties: { name: { type: 'string' } }, required: ['name'] },
};
const RIDDLE = {
  messages: [{ role: 'user', content: { type: 'text', text: 'What is the capital of France?' } }],
  maxTokens: 100,
};

let cancelled = 0;

const text = (value) => ({ content: [{ type: 'text', text: value }] });

export function enliven(server, sdk) {
  const tool = (name, description, run) =>
    server.registerTool(name, { description, inputSchema: sdk.object({}) }, (_, context) => run(context));
  tool('ask', 'Asks the user for a name', (context) =>
    sdk.elicit(context, { mode: 'form', ...QUESTION }, ({ action, content }) =>
      text(action === 'accept' ? `Hello, ${content.name}!` : action),
    ),
  );
  tool('think', "Asks the client's model", (context) =>
    sdk.sample(context, RIDDLE, ({ content }) => text([content].flat()[0].text)),
  );
  const place = sdk.object({
    region: z.string().meta({ 'x-mcp-header': 'Region' }),
    floor: z.number().int().meta({ 'x-mcp-header': 'Floor' }),
  });
  server.registerTool('route', { description: 'Says where a parcel goes', inputSchema: place }, async ({ region, floor }) =>
    text(`${region}, floor ${floor}`),
  );
  tool('wait', 'Waits until it is cancelled', async (context) => {
    const signal = sdk.signal(context);
    const ended = new Promise((resolve) => signal.addEventListener('abort', resolve, { once: true }));
    const progressToken = sdk.progressToken(context);
    // This tells the caller that the work has begun.
    const begun = { method: 'notifications/progress', params: { progressToken, progress: 1, total: 2 } };
    if (progressToken !== undefined) await sdk.notify(context, begun);
    if (!signal.aborted) await ended;
    cancelled += 1;
    return text('cancelled');
  });
  tool('cancelled', 'How often a call of wait was cancelled', async () => text(String(cancelled)));
  tool('change', 'Says that the list of tools has changed', async () => {
    await sdk.changed(server);
    return text('changed');
  });
  tool('nap', 'Closes the stream it was called on, and answers later', async (context) => {
    if (!sdk.hangUp(context)) return { ...text('there is no stream to close'), isError: true };
    await sleep(NAP_MS);
    return text('rested');
  });
  tool('drop', 'Closes the stream of no request, and then says on it that the list of tools has changed', async (context) => {
    await sdk.drop(context);
    await sdk.changed(server);
    return text('dropped');
  });
  tool('sessions', 'How many sessions there are', async () => text(String(sdk.sessions())));
  return server;
}
