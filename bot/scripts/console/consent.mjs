// A person gives a program access by OAuth, in a browser. Fails at the first thing that is not as it should be.
//
// Usage: node consent.mjs ADDRESS SETUP_LINK

import { strict as assert } from 'node:assert';
import { createHash } from 'node:crypto';
import { createServer } from 'node:http';

import { PASSWORD, Person, start } from './browser.mjs';

const [address, link] = process.argv.slice(2);
const VERIFIER = 'a-verifier-of-at-least-forty-three-characters-in-all';
const challenge = createHash('sha256').update(VERIFIER).digest('base64url');

const step = (what) => process.stderr.write(`console: ${what}\n`);
const json = { 'Content-Type': 'application/json' };

/** The program, which waits for the person on this machine. */
const returned = [];
const program = createServer((request, answer) => {
  if (request.url.startsWith('/callback')) returned.push(new URL(request.url, 'http://127.0.0.1').searchParams);
  answer.end('You may close this page.');
});
await new Promise((resolve) => program.listen(0, '127.0.0.1', resolve));
const redirect = `http://127.0.0.1:${program.address().port}/callback`;
const registration = { client_name: 'A <b>tool</b>', redirect_uris: ['http://127.0.0.1/callback'] };
const registered = await fetch(`${address}/oauth/register`, { method: 'POST', headers: json, body: JSON.stringify(registration) });
const { client_id } = await registered.json();

const asks = (more) =>
  `${address}/oauth/authorize?${new URLSearchParams({
    response_type: 'code', client_id, redirect_uri: redirect, code_challenge: challenge, code_challenge_method: 'S256',
    state: 'a & b', scope: 'chat memory:read vault', resource: `${address}/mcp`, ...more,
  })}`;

const browser = await start();
const ann = await Person.in(browser, address);
await ann.page.goto(link);
await ann.enter('Ann', 'Make the account');
const elsewhere = await Person.in(browser, address);
const { page } = elsewhere;

step('somebody who is not logged in logs in first');
await page.goto(asks({}));
await page.getByLabel('Name').fill('Ann');
await page.getByLabel('Password').fill('not the password');
await elsewhere.button('Log in').click();
await elsewhere.see('The name or the password is wrong.');
await page.getByLabel('Password').fill(PASSWORD);
await elsewhere.button('Log in').click();

step('the page says who asks, for what, and where they return');
await elsewhere.see('A program that calls itself');
assert.equal(await page.locator('#program').innerText(), 'A <b>tool</b>', 'a name is no markup');
assert.match(await page.locator('#place').innerText(), /your computer \(127\.0\.0\.1\)/);
const box = (words) => page.getByRole('checkbox', { name: words });
assert.equal(await box("use Azera's tools in your name").isDisabled(), true);
assert.equal(await box('read your conversations').isChecked(), true);
assert.equal(await box('read your secrets').isChecked(), false);
for (const colorScheme of ['light', 'dark']) {
  await page.emulateMedia({ colorScheme });
  await elsewhere.accessible(`consent, ${colorScheme}`);
}
await elsewhere.picture('consent');
await page.setViewportSize({ width: 390, height: 800 });
await elsewhere.fits('consent');

step('a person who denies gives nothing');
await elsewhere.button('Deny').click();
await page.waitForURL(`${redirect}?**`);
assert.equal(returned.pop().get('error'), 'access_denied');

step('a person who allows less gives less');
await page.goto(asks({}));
await box('read your conversations').uncheck();
const locked = () => {
  dispatchEvent(new Event('focus'));
  return document.getElementById('allow').disabled;
};
assert.equal(await page.evaluate(locked), true, 'a click that was meant for another page allows nothing');
await elsewhere.button('Allow').click();
await page.waitForURL(`${redirect}?**`);
const answer = returned.pop();
assert.deepEqual([answer.get('state'), answer.get('iss')], ['a & b', address]);
const fields = { grant_type: 'authorization_code', client_id, redirect_uri: redirect, code: answer.get('code'), code_verifier: VERIFIER };
const tokens = await (await fetch(`${address}/oauth/token`, { method: 'POST', body: new URLSearchParams(fields) })).json();
assert.equal(tokens.scope, 'mcp memory:read');

step('a request that cannot be granted leads back by a click alone');
await page.goto(asks({ resource: 'https://evil.example/mcp' }));
await elsewhere.see('asks for something that it cannot have');
assert.equal(returned.length, 0);
await page.getByRole('link', { name: /^Return to/ }).click();
await page.waitForURL(`${redirect}?**`);
assert.equal(returned.pop().get('error'), 'invalid_target');
await page.goto(asks({ redirect_uri: 'https://evil.example/' }));
await elsewhere.see('an address that is not its own');
assert.equal(await page.getByRole('link').count(), 0);

step('the console lists the program, and ends its access');
await ann.open('system/keys');
await ann.see('A <b>tool</b>');
await ann.accessible('programs with access');
const call = () =>
  fetch(`${address}/mcp`, {
    method: 'POST',
    headers: { ...json, Accept: 'application/json, text/event-stream', Authorization: `Bearer ${tokens.access_token}` },
    body: JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'tools/list', params: {} }),
  });
assert.equal((await call()).status, 200);
await ann.page.getByRole('button', { name: 'Revoke A <b>tool</b>' }).click();
await ann.see('No program has access.');
assert.equal((await call()).status, 401);

const own = (errors) => errors.filter((error) => !error.includes('401'));
assert.deepEqual([own(ann.errors), own(elsewhere.errors)], [[], []]);
await browser.close();
program.close();
