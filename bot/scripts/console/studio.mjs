// Pictures, speech, and what only the owner sees, in the web console in a browser. Fails at the first thing that is not as it
// should be.
//
// Usage: node studio.mjs ADDRESS SETUP_LINK ENDLESS. ENDLESS is a prompt that is never drawn to its end.

import { strict as assert } from 'node:assert';

import { PASSWORD, Person, start } from './browser.mjs';

const [address, link, endless] = process.argv.slice(2);
const PROMPT = 'a heliotrope lighthouse';
const SENTENCE = 'The ferry to the islands leaves at six in the morning, and it comes back at nine at night.';

const step = (what) => process.stderr.write(`console: ${what}\n`);
const browser = await start();
const ann = await Person.in(browser, address);
await ann.page.goto(link);
await ann.enter('Ann', 'Make the account');

/** Looks at the open page in light and dark, and on a phone. */
async function everywhere(person, what) {
  await person.closeNotices();
  for (const colorScheme of ['light', 'dark']) {
    await person.page.emulateMedia({ colorScheme });
    await person.accessible(`${what}, ${colorScheme}`);
  }
  await person.picture(`${what}-dark`);
  await person.page.emulateMedia({ colorScheme: 'light' });
  await person.picture(what);
  await person.page.setViewportSize({ width: 390, height: 800 });
  await person.fits(what);
  await person.picture(`${what}-phone`);
  await person.page.setViewportSize({ width: 1200, height: 800 });
}

const gallery = (person) => person.page.locator('main .picture img');

async function draw(prompt) {
  await ann.page.getByLabel('What to draw', { exact: true }).fill(prompt);
  await ann.button('Draw').click();
}

step('a picture is drawn, and shown in the gallery');
await ann.open('images');
await ann.see('There are no pictures yet.');
await draw(PROMPT);
await gallery(ann).first().waitFor();
assert.equal(await gallery(ann).first().getAttribute('alt'), PROMPT);
await ann.page.waitForFunction(() => document.querySelector('main .picture img').naturalWidth > 0);
const file = await gallery(ann).first().getAttribute('src');
await everywhere(ann, 'images');
await gallery(ann).first().click();
await ann.page.getByRole('dialog').getByText('seed').waitFor();
await ann.accessible('a picture');

step('a variation starts from it');
await ann.button('Draw a variation').click();
await ann.page.getByRole('img', { name: 'The picture to start from' }).waitFor();
await ann.accessible('a drawing from a picture');
await ann.button('Draw').click();
await gallery(ann).nth(1).waitFor();

step('it is pinned, and drawn larger');
await gallery(ann).last().click();
await ann.button('Pin').click();
await ann.button('Unpin').waitFor();
await ann.accessible('a pinned picture');
await ann.button('Draw larger').click();
await gallery(ann).nth(2).waitFor();
await ann.page.waitForFunction(() => document.querySelector('main .picture img').naturalWidth === 16);
await ann.page.getByRole('img', { name: 'Pinned' }).waitFor();
assert.equal(await ann.page.getByRole('img', { name: 'Pinned' }).count(), 1);

step('a picture that is being drawn is taken back');
await ann.open('system');
await ann.open('images');
await draw(endless);
await ann.button('Cancel').click();
await ann.button('Draw').waitFor();
assert.equal(await gallery(ann).count(), 3);

step('its chat shows it, and goes on like every other one');
await ann.page.getByRole('link', { name: /^Pictures/ }).click();
await ann.page.locator('article.assistant .picture img').first().waitFor();
await ann.page.waitForFunction(() => document.querySelector('article .picture img').naturalWidth > 0);
await ann.accessible('the chat of the pictures');
await ann.say('Thank you!');
await ann.page.locator('#composer').fill('/imagine a boat in the fog');
await ann.page.keyboard.press('Enter');
await ann.page.locator('article.assistant .picture img[alt*="a boat in the fog"]').waitFor();
await ann.open('images');
await gallery(ann).nth(3).waitFor();

step('what is never drawn is said');
await draw('a nude schoolgirl');
await ann.notice(/under 18/);
await ann.closeNotices();

step('nobody else sees a picture, and a guest has no pages of the owner');
await ann.open('system/people');
await ann.button('Make an invitation').click();
const bob = await Person.in(browser, address);
await bob.page.goto(await ann.page.getByRole('status').locator('code').innerText());
await bob.enter('Bob', 'Make the account');
await bob.open('images');
await bob.see('There are no pictures yet.');
assert.equal(await gallery(bob).count(), 0);
assert.equal((await bob.page.request.get(address + file)).status(), 404);
assert.equal((await ann.page.request.get(address + file)).status(), 200);
for (const name of ['Places', 'People', 'Backups', 'Log']) {
  await bob.open('system');
  assert.equal(await bob.page.getByRole('link', { name, exact: true }).count(), 0, name);
}
await bob.open('voice');
assert.equal(await bob.page.locator('input[type=file]').count(), 0, 'only owners keep recordings');
await bob.open('learning');
await bob.see('The owner of this Azera can turn it on.');

step('a picture is deleted, with what was drawn from it');
await ann.open('images');
await gallery(ann).last().click();
await ann.button('Remove').click();
await ann.confirm('Delete it');
await ann.page.waitForFunction(() => document.querySelectorAll('main .picture').length === 1);
assert.equal((await ann.page.request.get(address + file)).status(), 404);
await ann.open('system');
await ann.open('images');
await gallery(ann).first().waitFor();
assert.equal(await gallery(ann).count(), 1);

step('a text is spoken');
await ann.open('voice');
await ann.page.getByLabel('What to say').fill(SENTENCE);
await ann.button('Speak').click();
const sound = ann.page.getByLabel('The spoken text');
await sound.waitFor();
await ann.page.waitForFunction(() => document.querySelector('audio').duration > 3);
const [download] = await Promise.all([ann.page.waitForEvent('download'), ann.page.getByRole('link', { name: 'Download' }).click()]);

step('a recording is kept, listed and removed');
await ann.page.getByLabel(/^Recording \(/).setInputFiles(await download.path());
await ann.page.getByLabel('Name of the voice').fill('Joe');
await ann.page.getByLabel('Whose voice it is, and that they agreed').fill('A made-up voice.');
await ann.button('Keep it').click();
await ann.see('A made-up voice.');
await ann.page.getByLabel(/^Recording of joe-/).waitFor();
await everywhere(ann, 'voice');
await ann.page.getByRole('button', { name: /^Remove joe-/ }).click();
await ann.confirm('Remove it');
await ann.see('There are no recordings.');

step('the log goes on by itself');
await ann.open('system/log');
await ann.see("the owner's account was made");
const desk = await Person.in(browser, address);
await desk.page.goto(address);
await desk.enter('Ann', 'Log in');
await desk.open('system/backups');
await desk.button('Make a backup now').click();
await desk.notice('The backup is made.');
await ann.see('because the owner asked for it');
assert.ok(!(await ann.page.locator('main').innerText()).includes('heliotrope'), 'the log holds nothing that people said');
await everywhere(ann, 'log');
await ann.page.getByRole('combobox', { name: 'Show' }).selectOption({ label: 'Errors' });
await ann.see('There are no such lines.');
await ann.button('Pause').click();
await ann.button('Go on').click();

step('a backup is checked, and says how it is restored');
await desk.page.getByRole('button', { name: /^Check / }).first().click();
await desk.page.getByText('Whole', { exact: true }).waitFor();
await desk.page.getByRole('button', { name: /^Restore / }).first().click();
await desk.page.getByRole('dialog').getByText(/^azera restore azera-.*\.zip --replace$/).waitFor();
await desk.accessible('how to restore');
await desk.page.keyboard.press('Escape');
await everywhere(desk, 'backups');

step('where nothing is set up, the page says how');
await desk.open('places');
await desk.see('Azera is on no other platform yet');
await everywhere(desk, 'places');
step('a place is changed, and says what refuses');
const square = { id: 'discord:7', name: 'square', is_private: false, persona: 'Azera', invited: ['Luna'], answers: 'addressed', spoken_replies: 'auto', journal: null };
const changes = [];
await desk.page.route('**/api/places', (route) =>
  route.fulfill({
    json: {
      total: 2,
      items: [
        {
          platform: 'discord', is_reachable: false, since: '2027-01-15T08:00:00Z', last_trouble: { kind: 'closed', at: '2027-01-15T08:00:00Z' },
          invitation: { link: 'https://discord.com/oauth2/authorize?client_id=42', account: null }, direct: 3, unknown: 1,
          realms: [{ id: 'discord:1', name: 'Sailors', chats: [square] }],
        },
        { platform: 'matrix', is_reachable: true, since: null, last_trouble: null, invitation: { link: null, account: '@azera:example.org' }, direct: 0, unknown: 0, realms: [] },
      ],
    },
  }),
);
await desk.page.route('**/api/places/*', (route) => {
  const change = route.request().postDataJSON();
  changes.push([new URL(route.request().url()).pathname, change]);
  if (change.answers === 'always') return route.fulfill({ status: 422, json: { error: 'That is refused here.', code: 'refused' } });
  Object.assign(square, change.answers ? { answers: change.answers } : { journal: change.journal_here ? square.id : null });
  return route.fulfill({ json: { done: ['It is done.'] } });
});
await desk.open('system');
await desk.open('places');
await desk.see('The server closed the connection');
await desk.page.getByText('Bring it to another place').first().click();
await desk.see('https://discord.com/oauth2/authorize?client_id=42');
await everywhere(desk, 'places-changed');
await desk.button('Change square').click();
await desk.accessible('the settings of a place');
await desk.page.getByRole('combobox', { name: 'When', exact: true }).selectOption('never');
await desk.notice('It is done.');
// The box shows what holds, so it is ticked once the change is made.
await desk.page.getByLabel('Post the journal of this place here').click();
await desk.page.waitForFunction(() => document.querySelector('dialog input[type=checkbox]').checked);
await desk.page.getByRole('combobox', { name: 'When', exact: true }).selectOption('always');
await desk.notice('That is refused here.');
await desk.page.waitForFunction(() => [...document.querySelectorAll('dialog select')].some((select) => select.value === 'never'));
await desk.page.keyboard.press('Escape');
assert.deepEqual(changes, [{ answers: 'never' }, { journal_here: true }, { answers: 'always' }].map((change) => ['/api/places/discord%3A7', change]));
await desk.page.unroute('**/api/places');
await desk.page.unroute('**/api/places/*');
desk.refused = desk.refused.filter((one) => !one.includes('/api/places/'));

await desk.open('learning');
await desk.see('Learning is off');
await desk.see('enabled = true');
await everywhere(desk, 'learning');

step('a session that ends on the log asks for the password once');
await desk.open('system/account');
await desk.button('Log out everywhere').click();
await desk.page.getByLabel('Name').waitFor();
await ann.see('Your session has ended.');
assert.equal(await ann.page.locator('.notices p').count(), 0, 'the form says enough');
await ann.page.getByLabel('Password').fill(PASSWORD);
await ann.button('Log in').click();
await ann.page.getByText('Your session has ended.').waitFor({ state: 'detached' });
await ann.button('Log out').click();
await ann.page.getByLabel('Password').waitFor();
assert.ok(!(await ann.page.locator('body').innerText()).includes('heliotrope'));

for (const person of [ann, bob, desk]) assert.deepEqual(person.errors, []);
// What was refused was refused on purpose.
assert.deepEqual(ann.refused, ['422 POST /api/images/generate', '401 GET /api/logs']);
for (const person of [bob, desk]) assert.deepEqual(person.refused, []);
await browser.close();
