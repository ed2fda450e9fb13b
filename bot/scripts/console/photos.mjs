// What the field for messages does with pictures and texts that are pasted and dropped.

import { strict as assert } from 'node:assert';

/** Pastes, drags or drops a text and a photo of these sides, as far as there are any. Returns whether the page took it. */
const give = (person, kind, text, [width, height] = []) =>
  person.page.locator('#composer').evaluate(
    async (field, [kind, text, width, height]) => {
      const data = new DataTransfer();
      if (text) data.setData('text/plain', text);
      if (width) {
        const canvas = Object.assign(document.createElement('canvas'), { width, height });
        canvas.getContext('2d').fillRect(0, 0, width / 2, height);
        const blob = await new Promise((done) => canvas.toBlob(done, 'image/jpeg'));
        data.items.add(new File([blob], 'photo.jpg', { type: blob.type }));
      }
      const options = { bubbles: true, cancelable: true };
      const event = kind === 'paste' ? new ClipboardEvent(kind, { clipboardData: data, ...options }) : new DragEvent(kind, { dataTransfer: data, ...options });
      return !field.dispatchEvent(event);
    },
    [kind, text, width, height],
  );

export async function photos(person) {
  const attached = person.page.locator('.attached img');
  assert.equal(await give(person, 'paste', 'one\ttwo', [60, 20]), false, 'a spreadsheet copies a picture of the cells, too');
  for (const kind of ['dragover', 'drop']) assert.equal(await give(person, kind, 'words'), false, `${kind} of text is left to the field`);
  assert.equal(await give(person, 'dragover', '', [60, 20]), true);
  assert.equal(await give(person, 'drop', '', [4032, 3024]), true);
  await attached.first().waitFor();
  assert.equal(await give(person, 'paste', '', [60, 20]), true);
  await attached.nth(1).waitFor();
  assert.equal(await attached.count(), 2, 'nothing else was attached');
  await person.page.waitForFunction(() => [...document.querySelectorAll('.attached img')].every((image) => image.complete));
  const sizes = await attached.evaluateAll((images) => images.map((image) => [image.naturalWidth, image.naturalHeight]));
  assert.deepEqual(sizes, [[2048, 1536], [60, 20]]);
  for (let left = 2; left > 0; left--) await person.button('Leave photo.jpg out').first().click();
  await attached.first().waitFor({ state: 'detached' });
  // The line about a picture is not what the person said.
  await person.say('look at this\n[seen in photo.jpg, a guess] A grey cat.');
  const message = person.page.locator('article.user', { hasText: 'A grey cat.' });
  await message.hover();
  await message.getByRole('button', { name: 'Edit', exact: true }).click();
  assert.equal(await person.page.getByLabel('Edit').inputValue(), 'look at this');
  await person.button('Cancel').click();
}
