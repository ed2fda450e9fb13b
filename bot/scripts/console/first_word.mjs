// Measures how long the first words of a reply take from the server's socket to the screen. The server that Azera takes its
// words from is this program: it notes when it sends the first words, and the page notes when they are painted.
//
// Usage: node first_word.mjs AZERA [REPLIES]. AZERA_TEST_BROWSER and AZERA_TEST_CHROMIUM as for the tests. Prints one JSON object.

import { spawn } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { createServer } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';

import { Person, start } from './browser.mjs';

const [azera, replies = '100'] = process.argv.slice(2);
const FIRST = 'Heliotrope';

/** When the first words of the present reply were sent, in milliseconds since 1970. */
let sent = 0;

/** A model that says one word, then a few more, and notes when the first one goes. */
const model = createServer((request, answer) => {
  let body = '';
  request.on('data', (piece) => (body += piece));
  request.on('end', () => {
    if (request.url === '/api/tags') return answer.end(JSON.stringify({ models: [{ name: 'talker:latest', digest: 't' }] }));
    if (request.url === '/api/show') return answer.end(JSON.stringify({ model_info: { 'x.context_length': 4096 }, capabilities: ['completion'] }));
    const piece = (content, done) => `${JSON.stringify({ message: { role: 'assistant', content }, done, ...(done ? { done_reason: 'stop' } : {}) })}\n`;
    const isTurn = body.includes('"stream":true') && body.includes('measure');
    if (isTurn) sent = performance.timeOrigin + performance.now();
    answer.write(piece(`${FIRST} `, false));
    setTimeout(() => answer.end(piece('and a few more words.', false) + piece('', true)), 150);
  });
});
await new Promise((ready) => model.listen(0, '127.0.0.1', ready));

const folder = mkdtempSync(join(tmpdir(), 'first-word-'));
const settings = {
  AZERA_CONFIG: '/dev/null',
  AZERA__HTTP__LISTEN: '127.0.0.1:0',
  AZERA__CHAT_SERVER__API: 'ollama',
  AZERA__CHAT_SERVER__URL: `http://127.0.0.1:${model.address().port}`,
  AZERA__CHAT_SERVER__MODEL: 'talker',
};
const server = spawn(azera, ['run', '--data', folder], { env: { ...process.env, ...settings }, stdio: ['ignore', 'ignore', 'pipe'] });
const lines = createInterface({ input: server.stderr });
await new Promise((ready, failed) => {
  lines.on('line', (line) => line.includes('Azera listens') && ready());
  server.on('exit', () => failed(new Error('Azera did not start')));
});
const { address, setup } = JSON.parse(readFileSync(join(folder, 'web.json'), 'utf8'));

const browser = await start();
const ann = await Person.in(browser, address);
await ann.page.goto(setup);
await ann.enter('Ann', 'Make the account');

/** Says something, and returns when the first words of the reply were in the page and when the frame with them was shown. */
const shown = (text) =>
  ann.page.evaluate(
    ([text, first]) =>
      new Promise((done) => {
        const count = document.querySelectorAll('article.assistant').length;
        const watcher = new MutationObserver(() => {
          const reply = document.querySelectorAll('article.assistant')[count];
          if (!reply?.querySelector('.markdown')?.textContent.includes(first)) return;
          watcher.disconnect();
          const inPage = performance.timeOrigin + performance.now();
          // The callback after the next frame runs once that frame was handed to the compositor.
          requestAnimationFrame(() => {
            const channel = new MessageChannel();
            channel.port1.onmessage = () => done({ inPage, painted: performance.timeOrigin + performance.now() });
            channel.port2.postMessage(null);
          });
        });
        watcher.observe(document.querySelector('[role=log]'), { subtree: true, childList: true, characterData: true });
        const field = document.querySelector('#composer');
        field.value = text;
        field.dispatchEvent(new Event('input', { bubbles: true }));
        requestAnimationFrame(() => field.closest('form').requestSubmit());
      }),
    [text, FIRST],
  );

const times = { in_page: [], painted: [] };
for (let number = 0; number < Number(replies); number++) {
  const { inPage, painted } = await shown(`Please measure number ${number}.`);
  times.in_page.push(inPage - sent);
  times.painted.push(painted - sent);
  await ann.page.waitForFunction((wanted) => document.querySelectorAll('article.assistant footer').length >= wanted, number + 1);
  // An account may send 30 messages at once, and then one every two seconds.
  if (number > 20) await new Promise((go) => setTimeout(go, 2_000));
}
const at = (list, share) => Math.round([...list].sort((a, b) => a - b)[Math.min(list.length - 1, Math.floor(list.length * share))] * 10) / 10;
const figures = Object.fromEntries(
  Object.entries(times).map(([name, list]) => [name, { p50_ms: at(list, 0.5), p95_ms: at(list, 0.95), max_ms: at(list, 1) }]),
);
console.log(JSON.stringify({ replies: Number(replies), ...figures }));
await browser.close();
server.kill('SIGTERM');
await new Promise((ended) => server.once('exit', ended));
model.close();
rmSync(folder, { recursive: true, force: true });
