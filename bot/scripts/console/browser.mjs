// A browser and what people do with it, for the tests of the web console. AZERA_TEST_BROWSER names the folder of
// playwright-core and axe-core, AZERA_TEST_CHROMIUM the browser.

import { strict as assert } from 'node:assert';
import { readFileSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { join } from 'node:path';
import { crc32, deflateSync } from 'node:zlib';

const library = createRequire(join(process.env.AZERA_TEST_BROWSER, 'node_modules', 'x.js'));
const { chromium } = library('playwright-core');
const axe = readFileSync(library.resolve('axe-core/axe.min.js'), 'utf8');

/** The longest wait for something to appear, in milliseconds. A small model answers in seconds, also on a busy machine. */
const PATIENCE_MS = 120_000;

export const PASSWORD = 'correct horse battery';

/** Starts the browser. Chromium cannot put its own sandbox into that of a container, and the pages are our own. */
export const start = (more = []) =>
  chromium.launch({ executablePath: process.env.AZERA_TEST_CHROMIUM, args: ['--no-sandbox', '--disable-dev-shm-usage', ...more] });

/** A page of somebody's own browser. `errors` are those of its scripts, `refused` the requests that were not answered well. */
export class Person {
  static async in(browser, address, options = {}) {
    const context = await browser.newContext({ viewport: { width: 1200, height: 800 }, colorScheme: 'light', ...options });
    const page = await context.newPage();
    page.setDefaultTimeout(PATIENCE_MS);
    return new Person(address, context, page);
  }

  constructor(address, context, page) {
    Object.assign(this, { address, context, page, errors: [], refused: [] });
    page.on('pageerror', (error) => this.errors.push(error.message));
    page.on('response', (answer) => {
      const { pathname } = new URL(answer.url());
      if (answer.status() >= 400) this.refused.push(`${answer.status()} ${answer.request().method()} ${pathname}`);
    });
    page.on('console', (message) => {
      if (message.type() === 'error' && !message.text().startsWith('Failed to load resource')) this.errors.push(message.text());
    });
  }

  button = (name, options = {}) => this.page.getByRole('button', { name, exact: true, ...options });
  see = (text) => this.page.getByText(text).first().waitFor();

  /** Opens a page of the console. */
  async open(page) {
    await this.page.goto(`${this.address}/#/${page}`);
    await this.page.locator('main h1').first().waitFor();
    await this.page.waitForFunction(() => !document.body.innerText.includes('Loading…'));
  }

  /** Fills the form to log in, or to make an account. */
  async enter(name, button) {
    await this.page.getByLabel('Name').fill(name);
    await this.page.getByLabel('Password').fill(PASSWORD);
    await this.button(button).click();
    await this.page.locator('#composer').waitFor();
  }

  replies = () => this.page.locator('article.assistant').filter({ has: this.page.getByRole('button', { name: 'Why this reply?' }) });

  /** Says something, and returns the reply's text once it is complete. */
  async say(text) {
    const before = await this.replies().count();
    await this.page.locator('#composer').fill(text);
    await this.page.keyboard.press('Enter');
    await this.replies().nth(before).waitFor();
    return this.replies().nth(before).locator('.markdown').innerText();
  }

  /** Answers a question before something that cannot be undone. */
  confirm = (action) => this.page.getByRole('dialog').getByRole('button', { name: action, exact: true }).click();

  /** Waits until the page shows a message with these words. */
  notice = (words) => this.page.locator('.notices p').filter({ hasText: words }).first().waitFor();

  /** Closes all messages that the page shows. */
  closeNotices = () => this.page.evaluate(() => document.querySelectorAll('.notices button').forEach((button) => button.click()));

  /** Fails if axe finds something serious on the page. */
  async accessible(what) {
    await this.page.evaluate(axe);
    const { violations } = await this.page.evaluate(() => globalThis.axe.run({ resultTypes: ['violations'] }));
    const grave = violations.filter((found) => ['serious', 'critical'].includes(found.impact));
    const told = grave.map(({ id, nodes }) => `${id}: ${nodes.map((node) => `${node.html} ${node.failureSummary}`).join(' | ')}`);
    assert.deepEqual(told, [], `axe on ${what}`);
  }

  /** Fails if something reaches beyond the right edge. */
  async fits(what) {
    // The page itself scrolls within its frame.
    const [wide, shown] = await this.page.evaluate(() => {
      const frames = [document.documentElement, document.querySelector('main')];
      return [Math.max(...frames.map((frame) => frame.scrollWidth)), innerWidth];
    });
    assert.ok(wide <= shown, `${what} is ${wide} wide on a screen of ${shown}`);
  }

  /** Saves what is shown as a WebP picture, where AZERA_PICTURES names a folder. */
  async picture(name) {
    if (!process.env.AZERA_PICTURES) return;
    const png = (await this.page.screenshot({ animations: 'disabled' })).toString('base64');
    const blank = await this.context.newPage();
    const webp = await blank.evaluate(async (source) => {
      const image = Object.assign(new Image(), { src: `data:image/png;base64,${source}` });
      await image.decode();
      const canvas = Object.assign(document.createElement('canvas'), { width: image.width, height: image.height });
      canvas.getContext('2d').drawImage(image, 0, 0);
      return canvas.toDataURL('image/webp', 0.8);
    }, png);
    await blank.close();
    writeFileSync(join(process.env.AZERA_PICTURES, `${name}.webp`), Buffer.from(webp.split(',')[1], 'base64'));
  }
}

/** Returns a character card as PNG: one pixel, and the card in a text chunk. */
export function card(data) {
  const chunk = (type, content) => {
    const body = Buffer.concat([Buffer.from(type, 'latin1'), content]);
    const frame = Buffer.alloc(8);
    frame.writeUInt32BE(content.length, 0);
    frame.writeUInt32BE(crc32(body), 4);
    return Buffer.concat([frame.subarray(0, 4), body, frame.subarray(4)]);
  };
  const header = Buffer.from([0, 0, 0, 1, 0, 0, 0, 1, 8, 2, 0, 0, 0]);
  const text = Buffer.from(JSON.stringify({ spec: 'chara_card_v2', spec_version: '2.0', data })).toString('base64');
  return Buffer.concat([
    Buffer.from([0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a]),
    chunk('IHDR', header),
    chunk('tEXt', Buffer.from(`chara\0${text}`, 'latin1')),
    chunk('IDAT', deflateSync(Buffer.from([0, 60, 90, 130]))),
    chunk('IEND', Buffer.alloc(0)),
  ]);
}
