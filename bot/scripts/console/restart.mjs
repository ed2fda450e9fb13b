// Somebody waits for a reply in the web console while Azera is killed and started again. Prints a line once the first words
// of the reply are shown; the caller then kills Azera.
//
// Usage: node restart.mjs ADDRESS SETUP_LINK MESSAGE THOUGHT FIRST_WORDS WHOLE_REPLY

import { strict as assert } from 'node:assert';

import { Person, start } from './browser.mjs';

const [address, link, message, thought, firstWords, wholeReply] = process.argv.slice(2);
const browser = await start();
const ann = await Person.in(browser, address);
await ann.page.goto(link);
await ann.enter('Ann', 'Make the account');
await ann.page.locator('#composer').fill(message);
await ann.page.keyboard.press('Enter');
await ann.see(firstWords);
assert.equal(await ann.page.locator('details.thinking p').textContent(), thought);
await ann.button('Stop').waitFor();
await ann.accessible('a reply that comes in');
process.stdout.write('the reply has begun\n');
await ann.see('The connection broke.');
await ann.see(wholeReply);
assert.equal(await ann.page.locator('article.assistant').count(), 1, 'the reply is there once');
assert.equal(await ann.page.locator('article.user').count(), 1, 'the message is there once');
assert.equal(await ann.page.locator('#composer').inputValue(), '', 'nothing is to be sent again');
await ann.page.reload();
await ann.see(wholeReply);
assert.deepEqual(ann.errors, []);
await browser.close();
