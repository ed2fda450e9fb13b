// Runs the official conformance suite of the Model Context Protocol, for the tests.
//
// Usage: node mcp_conformance.mjs < JOB, with AZERA_TEST_MCP_CONFORMANCE naming the folder of the package.
//
// A job is one JSON object: `url` with `key`, `runs`, each a list of arguments of the suite, and perhaps `person`. The word
// `SERVER` in an argument stands for an address at which the server needs no key: the suite has no way to send one. Prints one
// JSON list with the exit code and the output of each run.
//
// A run of the suite's command `authorization` waits for a person in a browser. A `person` has the `headers` of a login, and
// what they `allow`.

import { spawn } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { createServer, request } from 'node:http';
import { join } from 'node:path';

const suite = join(process.env.AZERA_TEST_MCP_CONFORMANCE, 'node_modules/@modelcontextprotocol/conformance/dist/index.js');

// The suite imports `globSync`, which Node.js 20 does not have, for commands that are not used here.
const hooks = `export async function resolve(name, context, next) {
  if (name !== 'fs' || !context.parentURL?.includes('/conformance/')) return next(name, context);
  const source = "export * from 'node:fs'; export { default } from 'node:fs'; export const globSync = undefined;";
  return { url: 'data:text/javascript,' + encodeURIComponent(source), shortCircuit: true };
}`;
const data = (source) => `data:text/javascript,${encodeURIComponent(source)}`;
const hooked = data(`import { register } from 'node:module'; register(${JSON.stringify(data(hooks))});`);

/** Passes requests on with the key, and with everything else as it came. Waits where the server is asked too often. */
async function openDoor(url, key) {
  const upstream = new URL(url);
  const pass = (options, body, answered) => {
    const passed = request(options, (came) => {
      const wait = came.headers['retry-after'];
      if (came.statusCode === 429 && wait) {
        came.resume();
        setTimeout(() => pass(options, body, answered), 1000 * wait);
        return;
      }
      answered.writeHead(came.statusCode, came.headers);
      came.pipe(answered);
    });
    passed.on('error', () => answered.destroy());
    answered.on('close', () => passed.destroy());
    passed.end(body);
  };
  const server = createServer(async (asked, answered) => {
    const headers = { ...asked.headers, authorization: `Bearer ${key}` };
    // The server knows itself by its own address. Any other name is what the suite wants to see refused.
    const own = `localhost:${server.address().port}`;
    for (const name of ['host', 'origin']) if (headers[name]) headers[name] = headers[name].replace(own, upstream.host);
    const body = Buffer.concat(await asked.toArray());
    pass({ host: upstream.hostname, port: upstream.port, path: asked.url, method: asked.method, headers }, body, answered);
  });
  await new Promise((listening) => server.listen(0, 'localhost', listening));
  return { server, address: `http://localhost:${server.address().port}${upstream.pathname}` };
}

/** Does what a person does on the page of a program that asks for access, and returns to the program. */
async function decide(address, person) {
  const { origin, searchParams } = new URL(address);
  const body = JSON.stringify({ request: Object.fromEntries(searchParams), scopes: person.allow });
  const headers = { ...person.headers, 'Content-Type': 'application/json' };
  const decided = await fetch(`${origin}/api/oauth/decision`, { method: 'POST', headers, body });
  if (!decided.ok) throw new Error(`the decision was refused: ${decided.status} ${await decided.text()}`);
  await fetch((await decided.json()).location);
}

function run(parameters, person) {
  return new Promise((ended, failed) => {
    const child = spawn(process.execPath, ['--import', hooked, suite, ...parameters], { stdio: ['ignore', 'pipe', 'pipe'] });
    let output = '';
    let asked = false;
    // A run takes seconds. One that waits for what never comes must not hold up the tests for ever.
    const guard = setTimeout(() => child.kill(), 600_000);
    const hear = (chunk) => {
      output += chunk;
      const page = person && !asked && output.match(/^https?:\S*code_challenge\S*$/m);
      if (page && output.endsWith('\n')) {
        asked = true;
        decide(page[0], person).catch((error) => {
          output += `${error}\n`;
          child.kill();
        });
      }
    };
    child.stdout.setEncoding('utf8').on('data', hear);
    child.stderr.setEncoding('utf8').on('data', hear);
    child.on('error', failed);
    child.on('close', (code) => {
      clearTimeout(guard);
      ended({ code, output });
    });
  });
}

const job = JSON.parse(readFileSync(0, 'utf8'));
const door = await openDoor(job.url, job.key);
const came = [];
for (const parameters of job.runs) {
  came.push(await run(parameters.map((word) => word.replace('SERVER', door.address)), job.person));
}
door.server.close();
door.server.closeAllConnections();
process.stdout.write(JSON.stringify(came));
