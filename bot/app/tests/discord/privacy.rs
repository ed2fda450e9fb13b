//! People's retention preferences.

use crate::bot::Bot;
use crate::commands::{find, give, square};
use crate::{answered_for_good, as_described, fake};

#[test]
fn a_person_can_limit_memory_to_messages_addressed_to_the_bot() {
    let fake = fake();
    let ([ann, bob, _], square) = square(&fake);
    let mut bot = Bot::new(&fake, None).recalling_at_once();
    bot.start(&fake);
    fake.wait("the commands", |world| (!world.commands.is_empty()).then_some(()));
    let wished = give(&fake, square, bob, "privacy", "addressed", &[]);
    assert!(wished.contains("only what you say to me"), "{wished}");
    assert!(give(&fake, square, bob, "privacy", "show", &[]).contains("as you wish"));
    assert!(!give(&fake, square, ann, "privacy", "show", &[]).contains("as you wish"), "it is Bob's wish alone");
    let kettle = fake.world(|world| {
        world.say(square, bob, "the heliotrope ferry leaves at nine");
        world.say(square, ann, "the obsidian bridge is closed");
        world.say(square, bob, "Azera, the tangerine kettle whistles")
    });
    answered_for_good(&fake, square, kettle, "Noted.");
    find(&fake, square, ann, "obsidian bridge", "obsidian bridge");
    find(&fake, square, ann, "tangerine kettle", "tangerine kettle");
    let found = give(&fake, square, ann, "memory", "search", &[("words", "heliotrope ferry leaves at nine")]);
    assert!(!found.contains("heliotrope"), "{found}");
    // The preference survives forgetting the person's messages.
    give(&fake, square, bob, "forget", "me", &[]);
    assert!(give(&fake, square, bob, "privacy", "show", &[]).contains("as you wish"));
    give(&fake, square, bob, "privacy", "everything", &[]);
    fake.world(|world| world.say(square, bob, "the zeppelin lamp is green"));
    find(&fake, square, ann, "zeppelin lamp", "zeppelin lamp");
    as_described(&fake);
}
