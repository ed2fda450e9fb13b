use azera_model_api::{Error, Priority, Score, ScoreRequest, Scorer};

use super::*;

async fn score(messages: Vec<ChatMessage>, continuations: &[&str]) -> Vec<Score> {
    let continuations = continuations.iter().map(|text| (*text).to_owned()).collect();
    let request = ScoreRequest {
        messages,
        continuations,
        within: false,
        session: None,
        priority: Priority::Foreground,
        loras: vec![],
    };
    shared_engine().score(request).await.unwrap()
}

#[tokio::test]
async fn a_likelier_text_scores_higher() {
    let question = vec![user("What is the capital of France? Answer with one word.")];
    let scores = score(question, &["Paris", "Banana", "", "The capital of France is Paris."]).await;
    assert!(scores[0].log_prob > scores[1].log_prob, "{scores:?}");
    assert_eq!(scores[2], Score { log_prob: 0.0, tokens: 0 });
    assert_eq!(scores[3].tokens, shared_engine().count_tokens("The capital of France is Paris."));
    assert!(scores.iter().all(|score| score.log_prob <= 0.0));
}

#[tokio::test]
async fn a_score_does_not_depend_on_its_batch() {
    let words: Vec<String> =
        (0..20).map(|i| format!("number {i} of the twenty, counted aloud and slowly{}", " on".repeat(i))).collect();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let together = score(vec![user("Count.")], &words).await;
    for at in [0, 7, 8, 19] {
        let alone = score(vec![user("Count.")], &words[at..=at]).await;
        assert_eq!(alone[0].tokens, together[at].tokens);
        let difference = (alone[0].log_prob - together[at].log_prob).abs();
        assert!(difference < 0.05 * alone[0].log_prob.abs(), "{} and {}", alone[0].log_prob, together[at].log_prob);
    }
}

#[tokio::test]
async fn a_greedy_reply_is_likelier_than_its_tokens_in_another_order() {
    let prompt = vec![user("Tell me about the sea.")];
    let (reply, _) = ask(shared_engine(), greedy(prompt.clone(), 12)).await;
    let mut words: Vec<&str> = reply.split(' ').collect();
    words.reverse();
    let scores = score(prompt, &[&reply, &words.join(" ")]).await;
    assert!(scores[0].log_prob > scores[1].log_prob + 5.0, "{scores:?}");
}

#[tokio::test]
async fn a_preempted_score_is_still_right() {
    let engine = LlamaChat::load(LlamaChatConfig { slots: 1, ..config() }).unwrap();
    let request = |priority| ScoreRequest {
        messages: vec![persona("Azera"), user("How are you?")],
        continuations: (0..40).map(|i| format!("I am well, and {i} gulls sit on the rail of the gallery.")).collect(),
        within: false,
        session: None,
        priority,
        loras: vec![],
    };
    let expected = engine.score(request(Priority::Foreground)).await.unwrap();
    let scoring = tokio::spawn({
        let (engine, request) = (std::sync::Arc::clone(&engine), request(Priority::Background));
        async move { engine.score(request).await.unwrap() }
    });
    tokio::task::yield_now().await;
    for _ in 0..3 {
        ask(&engine, endless(3)).await;
    }
    let scores = scoring.await.unwrap();
    for (score, expected) in scores.iter().zip(&expected) {
        assert_eq!(score.tokens, expected.tokens);
        assert!((score.log_prob - expected.log_prob).abs() < 0.05 * expected.log_prob.abs());
    }
}

#[tokio::test]
async fn a_score_that_does_not_fit_is_rejected() {
    let request = |continuations| ScoreRequest {
        messages: vec![user("Hi")],
        continuations,
        within: false,
        session: None,
        priority: Priority::Background,
        loras: vec![],
    };
    let long = shared_engine().score(request(vec!["word ".repeat(2_048)])).await;
    assert!(matches!(long, Err(Error::TooLong { .. })), "{long:?}");
    let many = shared_engine().score(request(vec![String::new(); crate::MAX_CONTINUATIONS + 1])).await;
    assert!(matches!(many, Err(Error::Invalid(_))), "{many:?}");
}

/// Words within a message are scored as its reader would expect them. After a reply this costs little, because the
/// conversation holds the tokens before them.
#[tokio::test]
async fn words_are_scored_within_their_message() {
    let engine = shared_engine();
    let session = SessionKey::new("scored in place");
    let conversation = |last: &str| vec![persona("Azera"), user("My cat is called Pebble."), user(last)];
    let within = |last: &str, words: &[&str], session: Option<SessionKey>| ScoreRequest {
        messages: conversation(last),
        continuations: words.iter().map(|text| (*text).to_owned()).collect(),
        within: true,
        session,
        priority: Priority::Background,
        loras: vec![],
    };
    let words = ["Pebble.", "turbine."];
    let requested = "I love my cat, whose name is ";
    let whole = format!("{requested}{}", words[0]);
    let request = ChatRequest { session: Some(session.clone()), ..greedy(conversation(&whole), 8) };
    let (reply, _) = ask(engine, request.clone()).await;
    let retained = engine.score(within(requested, &words, Some(session.clone()))).await.unwrap();
    assert!(retained[0].log_prob > retained[1].log_prob, "{retained:?}");
    let anew = engine.score(within(requested, &words, None)).await.unwrap();
    for (retained, anew) in retained.iter().zip(&anew) {
        assert_eq!(retained.tokens, anew.tokens);
        assert!((retained.log_prob - anew.log_prob).abs() < 0.05 * anew.log_prob.abs(), "{retained:?} {anew:?}");
    }
    // The conversation continues from there, and its reply is as likely as without what the session holds. The two are
    // not compared as text: other tests share the engine's batches, whose rounding decides between two close tokens.
    let (_, usage) = ask(engine, request).await;
    assert!(usage.cached_tokens > usage.prompt_tokens / 2, "{usage:?}");
    let after = |session| ScoreRequest { within: false, session, ..within(&whole, &[&reply], None) };
    let retained = engine.score(after(Some(session))).await.unwrap()[0];
    let anew = engine.score(after(None)).await.unwrap()[0];
    assert_eq!(retained.tokens, anew.tokens);
    assert!((retained.log_prob - anew.log_prob).abs() < 0.05 * anew.log_prob.abs(), "{retained:?} {anew:?}");
}
