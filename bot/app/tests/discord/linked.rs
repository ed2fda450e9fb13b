//! Two linked accounts of one person.

use crate::bot::Bot;
use crate::commands::{find, give, square};
use crate::{as_described, fake};

#[test]
fn two_accounts_are_linked_by_a_code_and_unlinked_again() {
    let fake = fake();
    let ([ann, bob, cid], square) = square(&fake);
    let [dm_ann, dm_bob, dm_cid] = fake.world(|world| [world.dm(ann), world.dm(bob), world.dm(cid)]);
    let mut bot = Bot::new(&fake, None).recalling_at_once();
    bot.start(&fake);
    fake.wait("the commands", |world| (!world.commands.is_empty()).then_some(()));
    give(&fake, dm_ann, ann, "remember", "", &[("text", "the password is heliotrope")]);
    find(&fake, dm_ann, ann, "password", "heliotrope");
    let finds =
        |channel, who| give(&fake, channel, who, "memory", "search", &[("words", "password")]).contains("heliotrope");
    assert!(!finds(dm_bob, bob));
    let refused = give(&fake, square, ann, "link", "new", &[]);
    assert!(refused.contains("write to me directly"), "{refused}");
    let shown = give(&fake, dm_ann, ann, "link", "new", &[]);
    let code = shown.split("`/link ").nth(1).and_then(|rest| rest.split('`').next()).expect("a code");
    let question = give(&fake, dm_bob, bob, "link", "code", &[("code", code)]);
    assert!(question.contains("Ann") && question.contains("on discord"), "{question}");
    assert!(!finds(dm_bob, bob), "nobody said yes yet");
    let linked = give(&fake, dm_bob, bob, "link", "confirm", &[]);
    assert!(linked.starts_with("Linked with"), "{linked}");
    assert!(finds(dm_bob, bob) && finds(dm_ann, ann));
    assert!(!finds(square, bob) && !finds(square, ann) && !finds(dm_cid, cid));
    let used = give(&fake, dm_cid, cid, "link", "code", &[("code", code)]);
    assert!(used.contains("wrong or has expired"), "{used}");
    // The link survives a restart, and the code is not in the log.
    bot.stop(&fake);
    assert!(!bot.log().contains(code));
    bot.start(&fake);
    assert!(finds(dm_bob, bob));
    let removed = give(&fake, dm_bob, bob, "link", "remove", &[]);
    assert!(removed.contains("linked with no other any more"), "{removed}");
    assert!(!finds(dm_bob, bob) && finds(dm_ann, ann));
    as_described(&fake);
}
