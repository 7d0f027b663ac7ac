// The walk through a server that offers the shared catalogue (see ../README.md), the same for both
// TypeScript SDKs. `peer` hides the places where their APIs differ:
//   client            the SDK's client, connected
//   how               'stdio', 'http', 'stateless' or 'sse'
//   modern            whether the connection speaks 2026-07-28
//   callTool          (params, options) => result
//   request           (method) => raw request of any method
//   logs              the log notifications that have arrived so far
//   wire              every message that has arrived so far, before the SDK looks at it
import { assert, refusal } from './check.mjs';

const LOG_LEVEL = 'io.modelcontextprotocol/logLevel';
const NAMES = ['Ada', 'Alan', 'Barbara', 'Grace', 'Linus'];
const INVALID_PARAMS = -32602;
const METHOD_NOT_FOUND = -32601;
const RESOURCE_NOT_FOUND = -32002;

export async function walk(report, peer) {
  await lists(report, peer);
  await tools(report, peer);
  await progressAndLogs(report, peer);
  await resources(report, peer);
  await prompts(report, peer);
  await completion(report, peer);
  await lifecycle(report, peer);
}

async function lists(report, { client }) {
  await report.check('the server names itself', () => {
    assert.ok(client.getServerVersion()?.name);
  });
  await report.check('tools/list', async () => {
    const { tools } = await client.listTools();
    const names = tools.map((tool) => tool.name);
    for (const name of ['add', 'echo', 'fail', 'count']) assert.ok(names.includes(name), `${name} in ${names}`);
    const add = tools.find((tool) => tool.name === 'add');
    assert.equal(add.inputSchema.type, 'object');
    assert.deepEqual([...add.inputSchema.required].sort(), ['a', 'b']);
    assert.ok(add.outputSchema?.properties?.sum, 'add declares its output');
  });
  await report.check('resources/list', async () => {
    const { resources } = await client.listResources();
    const uris = resources.map((resource) => resource.uri);
    assert.ok(uris.includes('demo://greeting') && uris.includes('demo://logo'), String(uris));
  });
  await report.check('resources/templates/list', async () => {
    const { resourceTemplates } = await client.listResourceTemplates();
    assert.ok(resourceTemplates.some((template) => template.uriTemplate === 'demo://users/{name}'));
  });
  await report.check('prompts/list', async () => {
    const { prompts } = await client.listPrompts();
    const greet = prompts.find((prompt) => prompt.name === 'greet');
    assert.deepEqual(greet?.arguments.map(({ name, required }) => [name, required]), [['name', true]]);
  });
}

async function tools(report, { callTool }) {
  const echo = async (text) => {
    const result = await callTool({ name: 'echo', arguments: { text } });
    assert.ok(!result.isError);
    assert.equal(result.content[0].text, text);
  };
  await report.check('tools/call with structured content', async () => {
    const result = await callTool({ name: 'add', arguments: { a: 2, b: 40 } });
    assert.ok(!result.isError);
    assert.deepEqual(result.structuredContent, { sum: 42 });
    assert.match(result.content[0].text, /42/);
  });
  await report.check('tools/call with text', () => echo('héllo\n"wörld" \u2028 🦀'));
  await report.check('tools/call with 256 KiB', () => echo('x'.repeat(256 * 1024)));
  await report.check('32 calls at once', () => Promise.all(Array.from({ length: 32 }, (_, i) => echo(`call ${i}`))));
  await report.check('a tool that fails is a result with isError', async () => {
    const result = await callTool({ name: 'fail', arguments: {} });
    assert.equal(result.isError, true);
    assert.equal(result.content[0].type, 'text');
  });
  await report.check('arguments that do not fit are a result with isError', async () => {
    const result = await callTool({ name: 'add', arguments: { a: 'two', b: 40 } });
    assert.equal(result.isError, true);
  });
  await report.check('an unknown tool is refused', async () => {
    // Older SDKs answer with a failed result, which the early revisions left open.
    const answer = await callTool({ name: 'no-such-tool', arguments: {} }).catch((error) => error);
    assert.ok(answer.code === INVALID_PARAMS || answer.isError === true, JSON.stringify(answer));
  });
}

async function progressAndLogs(report, peer) {
  const { callTool, client, modern, logs, wire } = peer;
  await report.check('progress', async () => {
    const told = [];
    wire.length = 0;
    const onprogress = ({ progress }) => told.push(progress);
    const result = await callTool({ name: 'count', arguments: { to: 3 } }, { onprogress });
    assert.ok(!result.isError);
    // These SDKs forget the callback as soon as the answer is read, so progress that arrives in one
    // read with the answer is on the wire but not told. What the server sent is what counts here.
    const sent = wire.filter(({ method }) => method === 'notifications/progress').map(({ params }) => params.progress);
    assert.equal(sent.at(-1), 3);
    assert.ok(sent.every((value, i) => i === 0 || value > sent[i - 1]), `increasing: ${sent}`);
    assert.ok(told.every((value) => sent.includes(value)), `${told} out of ${sent}`);
  });
  await report.check('no progress without a token', async () => {
    wire.length = 0;
    await callTool({ name: 'count', arguments: { to: 3 } });
    assert.ok(wire.every(({ method }) => method !== 'notifications/progress'));
  });
  if (modern) {
    await report.check('no log without asking', async () => {
      logs.length = 0;
      await callTool({ name: 'count', arguments: { to: 2 } });
      assert.deepEqual(logs, []);
    });
  } else {
    await report.check('logging/setLevel', () => client.setLoggingLevel('debug'));
  }
  // Without a session nobody knows which messages a legacy client wants.
  if (peer.how === 'stateless') return;
  await report.check('log messages', async () => {
    logs.length = 0;
    const _meta = modern ? { [LOG_LEVEL]: 'debug' } : undefined;
    await callTool({ name: 'count', arguments: { to: 2 }, ...(_meta && { _meta }) });
    assert.ok(logs.length > 0);
    assert.ok(logs.every((log) => typeof log.level === 'string' && 'data' in log), JSON.stringify(logs));
  });
}

async function resources(report, { client }) {
  const only = async (uri) => {
    const { contents } = await client.readResource({ uri });
    assert.equal(contents.length, 1);
    assert.equal(contents[0].uri, uri);
    return contents[0];
  };
  await report.check('resources/read of text', async () => {
    const content = await only('demo://greeting');
    assert.equal(content.mimeType, 'text/plain');
    assert.equal(content.text, 'Hello from Toolwire');
  });
  await report.check('resources/read of a blob', async () => {
    const content = await only('demo://logo');
    assert.equal(content.mimeType, 'image/png');
    assert.equal(Buffer.from(content.blob, 'base64').subarray(1, 4).toString(), 'PNG');
  });
  await report.check('resources/read of a template', async () => {
    assert.equal((await only('demo://users/Ada')).text, 'Hello, Ada!');
  });
  await report.check('an unknown resource is refused', async () => {
    const { code } = await refusal(client.readResource({ uri: 'demo://no/such/resource' }));
    assert.ok(code === INVALID_PARAMS || code === RESOURCE_NOT_FOUND, String(code));
  });
}

async function prompts(report, { client }) {
  await report.check('prompts/get', async () => {
    const { messages } = await client.getPrompt({ name: 'greet', arguments: { name: 'Ada' } });
    assert.equal(messages.length, 1);
    assert.equal(messages[0].role, 'user');
    assert.equal(messages[0].content.text, 'Please greet Ada warmly.');
  });
  await report.check('a prompt without its argument is refused', async () => {
    const { code } = await refusal(client.getPrompt({ name: 'greet' }));
    assert.equal(typeof code, 'number');
  });
  await report.check('an unknown prompt is refused', async () => {
    const { code } = await refusal(client.getPrompt({ name: 'no-such-prompt' }));
    assert.equal(typeof code, 'number');
  });
}

async function completion(report, { client }) {
  const complete = async (ref, value) => {
    const answer = await client.complete({ ref, argument: { name: 'name', value } });
    return answer.completion.values;
  };
  const prompt = { type: 'ref/prompt', name: 'greet' };
  const template = { type: 'ref/resource', uri: 'demo://users/{name}' };
  await report.check('completion of a prompt argument', async () => {
    assert.deepEqual(await complete(prompt, 'A'), ['Ada', 'Alan']);
    assert.deepEqual(await complete(prompt, ''), NAMES);
  });
  await report.check('completion of a template variable', async () => {
    assert.deepEqual(await complete(template, 'G'), ['Grace']);
  });
}

async function lifecycle(report, { client, modern, request }) {
  if (modern) {
    await report.check('server/discover', async () => {
      const { supportedVersions } = await client.discover();
      assert.ok(supportedVersions.includes('2026-07-28'), String(supportedVersions));
    });
    await report.check('subscriptions/listen is acknowledged', async () => {
      const subscription = await client.listen({ toolsListChanged: true });
      await subscription.close();
    });
  } else {
    await report.check('ping', () => client.ping());
  }
  await report.check('an unknown method is -32601', async () => {
    const { code } = await refusal(request('no/such/method'));
    assert.equal(code, METHOD_NOT_FOUND);
  });
}
