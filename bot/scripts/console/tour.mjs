// Two people use the web console in a browser, from the first link on. Fails at the first thing that is not as it should be.
//
// Usage: node tour.mjs ADDRESS SETUP_LINK. With AZERA_PICTURES naming a folder, it also saves pictures of the pages.

import { strict as assert } from 'node:assert';

import { card, PASSWORD, Person, start } from './browser.mjs';
import { photos } from './photos.mjs';

const [address, link] = process.argv.slice(2);
const PAGES = ['chat', 'memory', 'memory/about', 'inner', 'inner/dream', 'inner/journal', 'inner/garden', 'inner/numbers', 'personas',
  'personas/new', 'models', 'images', 'voice', 'learning', 'places', 'privacy', 'system', 'system/account', 'system/keys', 'system/people',
  'system/backups', 'system/log'];

const step = (what) => process.stderr.write(`console: ${what}\n`);
const browser = await start();

step('the first link makes the account, and the first message a chat');
const ann = await Person.in(browser, address);
await ann.page.goto(link);
await ann.accessible('the form of the first link');
await ann.enter('Ann', 'Make the account');
assert.equal(new URL(ann.page.url()).hash, '', 'the code is of no use in the history');
await ann.accessible('the first page');
const transferred = await ann.page.evaluate(() => {
  const files = performance.getEntriesByType('resource').filter((entry) => entry.name.includes('/assets/'));
  return [...files, ...performance.getEntriesByType('navigation')].reduce((sum, entry) => sum + entry.transferSize, 0);
});
step(`the first load took ${transferred} bytes`);
assert.ok(transferred > 0 && transferred <= 120_000, 'the first load is small');
await ann.say('My bicycle is called Rocket, and I ride it to the old harbour every morning.');
const reply = await ann.say('What is my bicycle called?');
assert.ok(reply.length > 0);
await ann.picture('chat');

step('markup that people write stays text');
await ann.say('**bold** <img src=x onerror="window.broken=1"> [link](javascript:window.broken=1) `code`');
assert.equal(await ann.page.locator('article.user strong', { hasText: 'bold' }).count(), 1);
assert.equal(await ann.page.locator('article img, article a[href^="javascript"]').count(), 0);
await ann.say('<svg onload="window.broken=1"></svg> ![a](https://pictures.example/x.svg) ![b](data:image/svg+xml,<svg/onload=window.broken=1>) <iframe src="/"></iframe>');
assert.equal(await ann.page.locator('article svg, article iframe, article img, article object').count(), 0);
assert.equal(await ann.page.evaluate(() => window.broken), undefined);

step('text that is pasted or dragged stays text, and a photo of a phone is made smaller');
await photos(ann);

step('where nothing hears, the page says how that changes');
await ann.button('Talk').click();
await ann.page.getByRole('dialog').getByText('azera models pull whisper-base').waitFor();
await ann.accessible('what is missing to talk');
await ann.page.keyboard.press('Escape');

step('another window of the same person shows what is said in the first');
const second = await ann.context.newPage();
await second.goto(ann.page.url());
await second.locator('article.user strong', { hasText: 'bold' }).waitFor();
await ann.say('Two windows show:\n- one\n- two\nThat is all.');
const shown = second.locator('article.user', { hasText: 'Two windows show' });
await shown.waitFor();
assert.deepEqual(await shown.locator('li').allInnerTexts(), ['one', 'two'], 'a line without indentation ends a list');
await second.close();

step('each reply says what it rests on');
await ann.replies().nth(1).hover();
await ann.replies().nth(1).getByRole('button', { name: 'Why this reply?' }).click();
await ann.page.getByRole('complementary').getByText('Prompt in tokens').waitFor();
await ann.accessible('the panel of reasons');
await ann.page.keyboard.press('Escape');
assert.equal(await ann.page.getByRole('complementary').count(), 0);

step('another answer, an edit, and the branch before it');
const first = await ann.replies().last().locator('.markdown').innerText();
await ann.button('Answer again').click();
await ann.button('The answer before').click();
await ann.notice(/Answer \d of 2/);
assert.ok(first.length > 0);
const question = ann.page.locator('article.user', { hasText: 'What is my bicycle called?' });
await question.hover();
await question.getByRole('button', { name: 'Edit', exact: true }).click();
await ann.page.getByLabel('Edit').fill('Where do I ride my bicycle?');
await ann.page.locator('article.user form').getByRole('button', { name: 'Send' }).click();
await ann.see('Where do I ride my bicycle?');
await ann.page.waitForFunction(() => document.querySelectorAll('article.assistant footer').length === 2);
assert.equal(await ann.page.getByText('What is my bicycle called?').count(), 0);
await ann.page.getByLabel('Branch').selectOption({ label: 'Main' });
await ann.see('What is my bicycle called?');

step('a message is forgotten, with a receipt');
const secret = ann.page.locator('article.user', { hasText: 'What is my bicycle called?' });
await secret.hover();
await secret.getByRole('button', { name: 'Forget', exact: true }).click();
await ann.page.getByRole('dialog').waitFor();
await ann.accessible('the question before forgetting');
await ann.picture('forget');
await ann.confirm('Forget it');
await ann.notice(/Forgotten: messages 1/);
await secret.waitFor({ state: 'detached' });

step('title, group and tags');
await ann.button('Details').click();
await ann.page.getByLabel('Title').fill('About bicycles');
await ann.page.getByRole('dialog').getByRole('button', { name: 'Save', exact: true }).click();
await ann.page.getByText('Make or remove tags').click();
await ann.page.getByLabel('New name for tags').fill('hobby');
await ann.page.getByRole('dialog').getByRole('button', { name: 'Add', exact: true }).last().click();
await ann.page.getByRole('checkbox', { name: 'hobby' }).check();
await ann.accessible('the details of a chat');
await ann.page.keyboard.press('Escape');
await ann.page.getByRole('link', { name: /About bicycles/ }).waitFor();

step('memory: search, keep, forget');
await ann.open('memory');
await ann.page.getByLabel('What do you look for?').fill('bicycle harbour');
await ann.page.locator('main').getByRole('button', { name: 'Search', exact: true }).click();
await ann.see('My bicycle is called Rocket');
await ann.button('Where from?').first().click();
await ann.see(/Ann, \d{4}-/);
await ann.picture('memory');
await ann.open('memory/about');
await ann.page.getByLabel('Something to remember').fill('I like tea.');
await ann.button('Remember').click();
await ann.notice(/Kept as m\d+/);

step('learning is agreed to, and stopped');
await ann.open('learning');
await ann.button('Let it learn from me').click();
await ann.notice(/may change how I speak/);
await ann.button('Stop, and undo it').click();
await ann.confirm('Stop, and undo it');
await ann.notice(/no longer learn from you/);
await ann.button('Let it learn from me').waitFor();

step('a persona by card, a mistake with its line, and a second version');
await ann.open('personas');
const luna = card({ name: 'Luna', description: 'Luna is a cat of the moon who tells stories.', personality: 'calm', scenario: '', first_mes: 'Hello.', mes_example: '' });
await ann.page.locator('input[type=file]').setInputFiles({ name: 'luna.png', mimeType: 'image/png', buffer: luna });
await ann.page.getByRole('heading', { name: 'Luna', level: 1 }).waitFor();
const file = ann.page.getByLabel("The persona's file");
const text = await file.inputValue();
await file.fill(text.replace('name: Luna', 'name: Luna\nwakename: Moon'));
await ann.button('Save').click();
await ann.page.getByRole('alert').getByText('wakename').waitFor();
assert.ok((await ann.page.locator('.gutter .wrong').count()) > 0, 'the line is marked');
await ann.accessible('the editor with a mistake');
await ann.picture('persona');
await file.fill(text.replace('cat of the moon', 'cat of the moon and the sea'));
await ann.button('Save').click();
await ann.page.locator('main').getByText('Version 2', { exact: true }).first().waitFor();
await ann.page.getByText('Versions', { exact: true }).click();
await ann.button('Put into the editor').click();
assert.ok(!(await file.inputValue()).includes('and the sea'));
await ann.open('personas');
await ann.page.locator('article', { hasText: 'Luna' }).getByRole('button', { name: 'Chat' }).click();
await ann.say('Hello!');
assert.equal(await ann.page.getByLabel('Persona', { exact: true }).inputValue(), 'luna');

step('a guest comes by an invitation, and sees nothing of the owner');
await ann.open('system/people');
await ann.button('Make an invitation').click();
const invitation = await ann.page.getByRole('status').locator('code').innerText();
const bob = await Person.in(browser, address);
await bob.page.goto(invitation);
await bob.enter('Bob', 'Make the account');
await bob.say('My secret word is quagmire.');
await bob.open('memory');
await bob.page.getByLabel('What do you look for?').fill('bicycle Rocket harbour');
await bob.page.locator('main').getByRole('button', { name: 'Search', exact: true }).click();
await bob.page.locator('main').getByText(/found:|Nothing that may/).first().waitFor();
assert.ok(!(await bob.page.locator('body').innerText()).includes('old harbour'), 'Bob sees nothing of Ann');
assert.equal(await bob.page.getByRole('link', { name: /About bicycles/ }).count(), 0);
await bob.open('personas');
assert.equal(await bob.page.locator('input[type=file]').count(), 0, 'guests change no personas');
await bob.open('system');
assert.equal(await bob.page.getByRole('link', { name: 'People' }).count(), 0);
await ann.open('memory');
await ann.page.getByLabel('What do you look for?').fill('secret word quagmire');
await ann.page.locator('main').getByRole('button', { name: 'Search', exact: true }).click();
await ann.page.locator('main').getByText(/found:|Nothing that may/).first().waitFor();
assert.ok(!(await ann.page.locator('main .list').allInnerTexts()).join().includes('quagmire'), 'the owner sees nothing of Bob');

step('each page in light and dark, and on a phone');
await ann.closeNotices();
for (const page of PAGES) {
  await ann.open(page);
  for (const colorScheme of ['light', 'dark']) {
    await ann.page.emulateMedia({ colorScheme });
    await ann.accessible(`${page}, ${colorScheme}`);
  }
  if (page === 'inner') await ann.picture('inner-dark');
  await ann.page.setViewportSize({ width: 390, height: 800 });
  await ann.fits(page);
  await ann.page.setViewportSize({ width: 1200, height: 800 });
}
await ann.page.setViewportSize({ width: 390, height: 800 });
await ann.page.getByRole('button', { name: 'Menu' }).click();
await ann.page.getByRole('link', { name: /About bicycles/ }).click();
await ann.see('My bicycle is called Rocket');
await ann.fits('a chat');
await ann.accessible('a chat on a phone');
await ann.picture('phone');
await ann.page.setViewportSize({ width: 1200, height: 800 });

step('the colours that somebody chose stay');
await ann.page.getByLabel('Colours').selectOption('light');
await ann.page.reload();
await ann.page.locator('#composer').waitFor();
assert.equal(await ann.page.evaluate(() => getComputedStyle(document.documentElement).colorScheme), 'light');

step('a session that ends keeps what was typed');
const shared = await Person.in(browser, address);
await shared.page.goto(address);
await shared.enter('Ann', 'Log in');
await shared.page.getByRole('link', { name: /About bicycles/ }).click();
await shared.see('My bicycle is called Rocket');
const other = await Person.in(browser, address);
await other.page.goto(address);
await other.enter('Ann', 'Log in');
await other.open('system/account');
// Typed before the session ends: a page that hears of the end by itself takes no more words.
await shared.page.locator('#composer').fill('Words of Ann');
await ann.page.locator('#composer').fill('Words that must not be lost');
await other.button('Log out everywhere').click();
await other.page.getByLabel('Name').waitFor();
await ann.page.keyboard.press('Enter');
await ann.see('Your session has ended.');
await ann.accessible('the form above a page');
await ann.page.getByLabel('Password').fill(PASSWORD);
await ann.button('Log in').click();
await ann.page.getByText('Your session has ended.').waitFor({ state: 'detached' });
assert.equal(await ann.page.locator('#composer').inputValue(), 'Words that must not be lost');
await ann.page.locator('#composer').focus();
await ann.page.keyboard.press('Enter');
await ann.page.locator('article.user', { hasText: 'Words that must not be lost' }).waitFor();

step('somebody else who logs in there sees nothing of the one before');
await shared.page.keyboard.press('Enter');
await shared.see('Your session has ended.');
await shared.page.getByLabel('Name').fill('Bob');
await shared.page.getByLabel('Password').fill(PASSWORD);
await shared.button('Log in').click();
await shared.page.locator('footer .name', { hasText: 'Bob' }).waitFor();
await shared.page.getByRole('link', { name: /My secret word/ }).waitFor();
assert.equal(await shared.page.getByText(/Rocket|About bicycles/).count(), 0);
assert.equal(await shared.page.locator('#composer').inputValue(), '');

step('logging out shows nothing any more');
await bob.button('Log out').click();
await bob.page.getByLabel('Password').waitFor();
assert.ok(!(await bob.page.locator('body').innerText()).includes('quagmire'));
await bob.page.goBack().catch(() => undefined);
await bob.page.getByLabel('Password').waitFor();

for (const person of [ann, bob, other, shared]) assert.deepEqual(person.errors, []);
await browser.close();
