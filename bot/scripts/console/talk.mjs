// Somebody talks with the persona in the web console, with a microphone that plays a file. Fails at the first thing that is
// not as it should be.
//
// Usage: node talk.mjs ADDRESS SETUP_LINK SOUND WORD. SOUND is a WAV file in which WORD, a regular expression, is said.

import { strict as assert } from 'node:assert';

import { Person, start } from './browser.mjs';

const [address, link, sound, word] = process.argv.slice(2);
const step = (what) => process.stderr.write(`console: ${what}\n`);
const browser = await start([
  '--use-fake-device-for-media-stream',
  '--use-fake-ui-for-media-stream',
  `--use-file-for-fake-audio-capture=${sound}`,
  '--autoplay-policy=no-user-gesture-required',
]);
const ann = await Person.in(browser, address);
await ann.page.goto(link);
await ann.enter('Ann', 'Make the account');
const talk = () => ann.page.locator('button.talk');
const said = () => ann.page.locator('article.user').filter({ hasText: new RegExp(word, 'i') });
const recorded = (seconds) => ann.page.waitForFunction((least) => Number(/\d+/.exec(document.querySelector('button.talk').innerText)?.[0] ?? 0) >= least, seconds);

step('what is said while the button is held becomes a message, with its words');
await talk().hover();
await ann.page.mouse.down();
await recorded(6);
await ann.accessible('a recording');
await ann.page.mouse.up();
await said().first().waitFor();
await ann.replies().first().waitFor();
assert.equal(await ann.page.locator('article.user .chip', { hasText: 'Said aloud' }).count(), 1);
await ann.page.getByRole('link', { name: new RegExp(word, 'i') }).waitFor();
await ann.picture('chat-aloud');

step('a reply is played, and stopped');
await ann.button('Play').first().click();
await ann.button('Stop').first().waitFor();
await ann.button('Stop').first().click();
await ann.button('Play').first().waitFor();

step('each reply is spoken, if somebody chose that');
await ann.page.getByRole('checkbox', { name: 'Speak replies' }).check();
await ann.say('Thank you!');
await ann.page.waitForFunction(() => [...document.querySelectorAll('article.assistant footer button')].some((button) => button.innerText === 'Stop'));
await ann.page.getByRole('checkbox', { name: 'Speak replies' }).uncheck();
await ann.page.waitForFunction(() => [...document.querySelectorAll('article.assistant footer button')].every((button) => button.innerText !== 'Stop'));

step('one press of the key begins a recording, and Escape throws it away');
const messages = await ann.page.locator('article').count();
await ann.page.keyboard.press('Alt+v');
await recorded(1);
assert.equal(await talk().getAttribute('aria-pressed'), 'true');
await ann.page.keyboard.press('Escape');
await ann.page.waitForFunction(() => document.querySelector('button.talk').innerText === 'Talk');
assert.equal(await ann.page.locator('article').count(), messages);

step('Escape before the microphone is there leaves it off');
await ann.page.evaluate(() => {
  const { mediaDevices } = navigator;
  const ask = mediaDevices.getUserMedia.bind(mediaDevices);
  const allowed = new Promise((allow) => (globalThis.allow = allow));
  globalThis.given = [];
  mediaDevices.getUserMedia = async (wanted) => {
    await allowed;
    const stream = await ask(wanted);
    globalThis.given.push(stream);
    return stream;
  };
});
await ann.page.keyboard.press('Alt+v');
await ann.page.keyboard.press('Escape');
await ann.page.evaluate(() => globalThis.allow());
await ann.page.waitForFunction(() => globalThis.given[0]?.getTracks().every((track) => track.readyState === 'ended'));
assert.equal(await talk().getAttribute('aria-pressed'), 'false');
assert.equal(await talk().innerText(), 'Talk');
assert.equal(await ann.page.locator('article').count(), messages);

step('two presses send, on a phone, too');
await ann.page.setViewportSize({ width: 390, height: 800 });
await ann.page.reload();
await said().first().waitFor();
await ann.fits('the chat with the button');
const before = await ann.replies().count();
await talk().click();
await recorded(6);
await talk().click();
await ann.replies().nth(before).waitFor();
await ann.page.waitForFunction(() => document.querySelectorAll('article.user .chip').length === 2);

step('what is said while a reply comes is sent after it');
let [goOn, count] = [null, await ann.replies().count()];
const answers = new Promise((go) => (goOn = go));
await ann.page.route('**/api/chat/stream', async (route) => {
  await answers;
  await route.continue();
});
await ann.page.keyboard.press('Alt+v');
await recorded(6);
await ann.page.locator('#composer').fill('Wait a moment!');
await ann.page.keyboard.press('Enter');
await ann.page.locator('[role=log][aria-busy=true]').waitFor();
await talk().click();
await ann.see('Your recording is sent after this reply.');
goOn();
await ann.replies().nth(count + 1).waitFor();
await ann.page.waitForFunction(() => document.querySelectorAll('article.user .chip').length === 3);
await ann.page.unroute('**/api/chat/stream');

step('a browser that keeps the rate of its microphone sends no larger sound, and is understood');
await ann.page.addInitScript(() => {
  const { createMediaStreamSource } = AudioContext.prototype;
  AudioContext.prototype.createMediaStreamSource = function (stream) {
    if (this.sampleRate === 16000) throw new DOMException('The rates differ.', 'NotSupportedError');
    globalThis.rate = this.sampleRate;
    return createMediaStreamSource.call(this, stream);
  };
  const { fetch } = globalThis;
  globalThis.fetch = async (address, options) => {
    const file = options?.body instanceof FormData && options.body.get('file');
    if (file) globalThis.sent = new DataView(await file.arrayBuffer()).getUint32(24, true);
    return fetch(address, options);
  };
});
await ann.page.reload();
await said().first().waitFor();
[count] = [await said().count()];
await talk().click();
await recorded(6);
await talk().click();
await said().nth(count).waitFor();
const { rate, sent } = await ann.page.evaluate(() => ({ rate: globalThis.rate, sent: globalThis.sent }));
assert.ok(rate > 16000, `the microphone has ${rate} samples a second`);
assert.equal(sent, 16000);

assert.deepEqual(ann.errors, []);
assert.deepEqual(ann.refused, []);
await browser.close();
