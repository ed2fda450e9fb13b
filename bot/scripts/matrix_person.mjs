// A person with a Matrix client, by matrix-js-sdk, that verifies devices the way people do. Uses the same input and
// output lines as matrix_person.py.
//
// Usage: node matrix_person.mjs HOMESERVER NAME, with AZERA_TEST_MATRIX_JS naming the folder of matrix-js-sdk. The
// account must exist. Each start is a new device.

import { createInterface } from 'node:readline';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';

// The output is only for answers, so silence the library.
console.log = console.info = console.debug = () => {};

const library = (path) => import(pathToFileURL(join(process.env.AZERA_TEST_MATRIX_JS, 'node_modules/matrix-js-sdk/lib', path)));
const sdk = await library('index.js');
const { CryptoEvent, VerificationPhase, VerificationRequestEvent, VerifierEvent } = await library('crypto-api/index.js');
const { logger } = await library('logger.js');
logger.setLevel('error');

const PASSWORD = 'correct horse';
const SAS = 'm.sas.v1';
const [homeserver, name] = process.argv.slice(2);

const tell = (line) => process.stdout.write(`${JSON.stringify(line)}\n`);
const seconds = () => performance.now() / 1000;

/** Calls `look` now and whenever `emitter` tells of `event`, until it gives something. */
function until(emitter, event, look) {
  return new Promise((resolve, reject) => {
    const again = () => {
      try {
        const found = look();
        if (!found) return;
        emitter.off(event, again);
        resolve(found);
      } catch (error) {
        emitter.off(event, again);
        reject(error);
      }
    };
    emitter.on(event, again);
    again();
  });
}

const anonymous = sdk.createClient({ baseUrl: homeserver });
const session = await anonymous.loginRequest({
  type: 'm.login.password',
  identifier: { type: 'm.id.user', user: name },
  password: PASSWORD,
  initial_device_display_name: 'test',
});
const client = sdk.createClient({
  baseUrl: homeserver,
  userId: session.user_id,
  deviceId: session.device_id,
  accessToken: session.access_token,
  verificationMethods: [SAS],
});
await client.initRustCrypto({ useIndexedDB: false });
const crypto = client.getCrypto();

/** What was told of each event: one that could not be read is told again when it can be. */
const told = new Map();

async function heard(event) {
  await client.decryptEventIfNeeded(event);
  const readable = !event.isDecryptionFailure();
  if (event.status || told.get(event.getId()) === readable) return;
  told.set(event.getId(), readable);
  tell({
    type: 'event',
    room: event.getRoomId(),
    event: event.getId(),
    sender: event.getSender(),
    state_key: event.getStateKey() ?? null,
    kind: readable ? event.getType() : 'm.room.encrypted',
    content: readable ? event.getOriginalContent() : {},
    redacts: event.getAssociatedId() ?? null,
    at: seconds(),
    stored: event.getTs() / 1000,
    encrypted: event.isEncrypted(),
    readable,
  });
}

client.on(sdk.RoomEvent.Timeline, (event) => heard(event));
client.on(sdk.MatrixEventEvent.Decrypted, (event) => event.getRoomId() && heard(event));
client.on(sdk.RoomEvent.MyMembership, (room, membership) => {
  if (membership === 'invite') tell({ type: 'invited', room: room.roomId, sender: room.getDMInviter() ?? null });
});

/** Both sides of a verification see the same numbers, and each says so. */
async function compare(verifier) {
  verifier.on(VerifierEvent.ShowSas, (sas) => sas.confirm());
  await verifier.verify();
}

// Accept the request of the person's other device.
client.on(CryptoEvent.VerificationRequestReceived, async (request) => {
  await request.accept();
  await compare(await until(request, VerificationRequestEvent.Change, () => request.verifier));
});

const commands = {
  async create({ invite, encrypted = false, preset = 'private_chat', direct = false }) {
    const algorithm = { algorithm: 'm.megolm.v1.aes-sha2' };
    const initial_state = encrypted ? [{ type: 'm.room.encryption', state_key: '', content: algorithm }] : [];
    const made = await client.createRoom({ invite, preset, is_direct: direct, initial_state });
    return { room: made.room_id };
  },

  async join({ room }) {
    await client.joinRoom(room);
    return {};
  },

  async send({ room, content, kind = 'm.room.message', encrypted = false }) {
    const here = () => client.getRoom(room);
    await until(client, sdk.ClientEvent.Sync, () => here() && here().hasEncryptionStateEvent() === encrypted);
    return { event: (await client.sendEvent(room, kind, content)).event_id, at: seconds() };
  },

  /** Makes cross-signing keys for the account, and signs this device with them. */
  async cross_sign() {
    const identifier = { type: 'm.id.user', user: session.user_id };
    const proof = { type: 'm.login.password', identifier, password: PASSWORD };
    await crypto.bootstrapCrossSigning({ authUploadDeviceSigningKeys: (upload) => upload(proof) });
    return {};
  },

  /** Verifies another device of the same person, which accepts. */
  async verify_device({ device }) {
    await crypto.getUserDeviceInfo([session.user_id], true);
    const request = await crypto.requestDeviceVerification(session.user_id, device);
    await until(request, VerificationRequestEvent.Change, () => request.phase === VerificationPhase.Ready);
    await compare(await request.startVerification(SAS));
    await until(request, VerificationRequestEvent.Change, () => request.phase === VerificationPhase.Done);
    return {};
  },

  /** Whether each device of somebody is signed by its owner. */
  async devices({ user }) {
    const devices = (await crypto.getUserDeviceInfo([user], true)).get(user) ?? new Map();
    const status = async (device) => (await crypto.getDeviceVerificationStatus(user, device))?.signedByOwner === true;
    const signed = await Promise.all([...devices.keys()].map(async (device) => [device, await status(device)]));
    return { devices: Object.fromEntries(signed) };
  },
};

await client.startClient({ initialSyncLimit: 500 });
await until(client, sdk.ClientEvent.Sync, () => client.isInitialSyncComplete());
tell({ type: 'ready', device: session.device_id });
for await (const line of createInterface({ input: process.stdin })) {
  const { id, do: name, ...given } = JSON.parse(line);
  commands[name](given).then(
    (answer) => tell({ type: 'done', id, ...answer }),
    (error) => tell({ type: 'failed', id, why: String(error?.stack ?? error) }),
  );
}
process.exit(0);
