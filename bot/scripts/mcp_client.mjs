// Uses Azera's memory through the official `@modelcontextprotocol/sdk`, for the tests.
//
// Usage: node mcp_client.mjs < JOB, with AZERA_TEST_MCP_JS naming the folder of the package.
//
// A job is one JSON object: `command` with `env`, or `url` with `key` and perhaps `persona`; and `steps`, each
// `[METHOD, ARGUMENTS]`. Prints one JSON list with what came back. The methods are those of the package's client, and
//   call    {tool, arguments}            the answer of a tool, checked against its schema
//   cancel  {tool, arguments}            a call that is cancelled as soon as it began
//   pages   {tool, arguments, items}     the items of all pages of a tool

import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';

const library = (path) =>
  import(pathToFileURL(join(process.env.AZERA_TEST_MCP_JS, 'node_modules/@modelcontextprotocol/sdk/dist/esm', path)));
const { Client } = await library('client/index.js');
const { StdioClientTransport } = await library('client/stdio.js');
const { StreamableHTTPClientTransport } = await library('client/streamableHttp.js');

/** Longest wait for one answer. */
const TIMEOUT_MS = 300_000;

function transport(job) {
  if (job.command) {
    const [command, ...args] = job.command;
    return new StdioClientTransport({ command, args, env: job.env, stderr: 'inherit' });
  }
  const headers = { Authorization: `Bearer ${job.key}` };
  if (job.persona) headers['Azera-Persona'] = job.persona;
  return new StreamableHTTPClientTransport(new URL(job.url), { requestInit: { headers } });
}

async function step(client, method, given, progress) {
  const options = { timeout: TIMEOUT_MS, onprogress: (told) => progress.push(told.progress) };
  const call = (more, extra) =>
    client.callTool({ name: given.tool, arguments: { ...given.arguments, ...more } }, undefined, { ...options, ...extra });
  if (method === 'call') return call({}, {});
  if (method === 'cancel') {
    const cancelling = new AbortController();
    const began = call({}, { signal: cancelling.signal, onprogress: () => cancelling.abort('the person cancelled') });
    // Over HTTP, no progress comes before the answer.
    setTimeout(() => cancelling.abort('the person cancelled'), 0);
    return began;
  }
  if (method === 'pages') {
    const items = [];
    let cursor;
    do {
      const page = (await call(cursor ? { cursor } : {}, {})).structuredContent;
      items.push(...page[given.items]);
      cursor = page.next_cursor;
    } while (cursor);
    return { items };
  }
  return client[method](given, options);
}

async function run(job) {
  const [came, progress] = [[], []];
  const client = new Client({ name: 'azera-tests', version: '1' });
  await client.connect(transport(job));
  for (const [method, given] of job.steps) {
    try {
      came.push(await step(client, method, given, progress));
    } catch (error) {
      came.push({ raised: error.name, says: String(error.message) });
    }
  }
  await client.close();
  return [...came, { progress }];
}

const job = JSON.parse(readFileSync(0, 'utf8'));
let came;
try {
  came = await run(job);
} catch (error) {
  came = [{ failed: error.name, says: String(error.message) }];
}
process.stdout.write(JSON.stringify(came), () => process.exit(0));
