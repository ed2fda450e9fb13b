//! Measures composing the prompt of a turn, with a long history, eight recalled lines, and words as tokens.

use std::hint::black_box;

use azera_personas::built_in;
use azera_prompt::{Budget, Line, MemoryOrigin, PromptParts, RecalledMemory, compose, form_for};
use criterion::{Criterion, criterion_group, criterion_main};

fn composing(criterion: &mut Criterion) {
    let persona = built_in("azera").expect("is built in");
    let line =
        |depth: u64, speaker: Option<&str>, text: String| Line { depth, speaker: speaker.map(str::to_owned), text };
    let history: Vec<Line> = (0..128)
        .map(|depth| match depth % 2 {
            0 => line(depth, Some("Ann"), format!("Today I walked {depth} steps along the harbour and back")),
            _ => line(depth, None, format!("That is {depth} more than yesterday, well done")),
        })
        .collect();
    let recalled: Vec<RecalledMemory> = (0..8)
        .map(|number| {
            RecalledMemory::new(
                MemoryOrigin::Said,
                Some("Ann".to_owned()),
                format!("the code of locker {number} is {}", number * 1_111),
                "2026-05-09T10:00:00Z".parse().expect("a time"),
            )
        })
        .collect();
    let message = line(128, Some("Ann"), "What is the code of my locker?".to_owned());
    let form = form_for("smollm2", None);
    let budget = Budget { context_tokens: 4_096, reply_tokens: 256 };
    let words = |text: &str| text.split_whitespace().count();
    criterion.bench_function("compose/128 lines of history", |bench| {
        bench.iter(|| {
            let parts = PromptParts {
                history: black_box(&history),
                recalled: &recalled,
                ..PromptParts::new(&persona, &message)
            };
            compose(&form, &parts, budget, &words).expect("there is room")
        });
    });
}

criterion_group!(benches, composing);
criterion_main!(benches);
