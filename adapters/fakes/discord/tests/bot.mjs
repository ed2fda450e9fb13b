// A bot of discord.js, as its guide teaches it: it answers, changes what it said, attaches a file, and has a slash command.
import { createRequire } from 'node:module';

const require = createRequire(`${process.env.AZERA_TEST_DISCORD_JS}/`);
const { Client, GatewayIntentBits, MessageFlags } = require('discord.js');

const { Guilds, GuildMessages, DirectMessages, MessageContent } = GatewayIntentBits;
const client = new Client({
  intents: [Guilds, GuildMessages, DirectMessages, MessageContent],
  rest: { api: process.env.PEER_API },
});

client.once('clientReady', () =>
  client.application.commands.set([
    {
      name: 'echo',
      description: 'says it back',
      options: [{ type: 3, name: 'text', description: 'what', required: true }],
    },
  ]),
);

client.on('messageCreate', async (message) => {
  if (message.author.bot) return;
  if (message.content === 'file') {
    await message.reply({ content: 'here', files: [{ attachment: Buffer.from('a note'), name: 'note.txt' }] });
  } else if (message.content === 'change') {
    const said = await message.reply('first');
    await said.edit(`second, in #${message.channel.name}`);
  } else {
    await message.reply(`You said: ${message.content}`);
  }
});

client.on('interactionCreate', async (interaction) => {
  if (!interaction.isChatInputCommand()) return;
  await interaction.deferReply({ flags: MessageFlags.Ephemeral });
  await interaction.editReply(`${interaction.user.username}: ${interaction.options.getString('text')}`);
});

await client.login(process.env.PEER_TOKEN);
