// The shared catalogue (see ../README.md) on either TypeScript SDK. `sdk` hides where they differ:
//   object            (zod shape) => what `registerTool` takes as a schema
//   completable       the SDK's function of that name
//   ResourceTemplate  the SDK's class of that name
//   notify            (context, notification) => sends it as part of the request being served
//   log               (server, context, params) => sends a log message if the client wants it
//   progressToken     (context) => the token the caller gave, if any
import { z } from 'zod';

const NAMES = ['Ada', 'Alan', 'Barbara', 'Grace', 'Linus'];
// The smallest PNG there is: one transparent pixel.
const LOGO =
  'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNkYPhfDwAChwGA60e6kgAAAABJRU5ErkJggg==';

const namesFrom = (prefix) => NAMES.filter((name) => name.startsWith(prefix ?? ''));
const text = (value) => [{ type: 'text', text: value }];

export function offer(server, sdk) {
  tools(server, sdk);
  resources(server, sdk);
  prompts(server, sdk);
  return server;
}

function tools(server, sdk) {
  server.registerTool(
    'add',
    {
      description: 'Adds two integers',
      inputSchema: sdk.object({ a: z.number().int(), b: z.number().int() }),
      outputSchema: sdk.object({ sum: z.number().int() }),
    },
    async ({ a, b }) => ({ content: text(String(a + b)), structuredContent: { sum: a + b } }),
  );
  server.registerTool(
    'echo',
    { description: 'Returns the text it is given', inputSchema: sdk.object({ text: z.string() }) },
    async (args) => ({ content: text(args.text) }),
  );
  server.registerTool('fail', { description: 'Always fails', inputSchema: sdk.object({}) }, async () => ({
    content: text('this tool always fails'),
    isError: true,
  }));
  server.registerTool(
    'count',
    { description: 'Counts and tells how far it is', inputSchema: sdk.object({ to: z.number().int() }) },
    async ({ to }, context) => {
      const progressToken = sdk.progressToken(context);
      for (let progress = 1; progress <= to; progress += 1) {
        if (progressToken !== undefined) {
          await sdk.notify(context, { method: 'notifications/progress', params: { progressToken, progress, total: to } });
        }
        await sdk.log(server, context, { level: 'info', logger: 'count', data: `counted to ${progress}` });
      }
      return { content: text(`counted to ${to}`) };
    },
  );
}

function resources(server, sdk) {
  server.registerResource('greeting', 'demo://greeting', { mimeType: 'text/plain' }, async (uri) => ({
    contents: [{ uri: uri.href, mimeType: 'text/plain', text: 'Hello from Toolwire' }],
  }));
  server.registerResource('logo', 'demo://logo', { mimeType: 'image/png' }, async (uri) => ({
    contents: [{ uri: uri.href, mimeType: 'image/png', blob: LOGO }],
  }));
  const template = new sdk.ResourceTemplate('demo://users/{name}', { list: undefined, complete: { name: namesFrom } });
  server.registerResource('user', template, { mimeType: 'text/plain' }, async (uri, { name }) => ({
    contents: [{ uri: uri.href, mimeType: 'text/plain', text: `Hello, ${name}!` }],
  }));
}

function prompts(server, sdk) {
  server.registerPrompt(
    'greet',
    { description: 'Asks for a greeting', argsSchema: sdk.object({ name: sdk.completable(z.string(), namesFrom) }) },
    ({ name }) => ({
      messages: [{ role: 'user', content: { type: 'text', text: `Please greet ${name} warmly.` } }],
    }),
  );
}
