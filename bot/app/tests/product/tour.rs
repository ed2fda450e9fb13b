//! The tour with the default models: it must show what it announces, whatever the models say.

use crate::azera;

/// Returns the output between `from` and `to`.
#[track_caller]
fn part<'a>(output_text: &'a str, from: &str, to: &str) -> &'a str {
    let rest = output_text.split_once(from).unwrap_or_else(|| panic!("no {from:?} in:\n{output_text}")).1;
    rest.split_once(to).unwrap_or_else(|| panic!("no {to:?} after {from:?} in:\n{output_text}")).0
}

#[test]
fn the_tour_shows_a_dream_a_kept_secret_and_a_receipt() {
    let home = tempfile::tempdir().expect("a folder");
    let output = azera(home.path(), &["tour"], "");
    let output_text = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{output_text}\n{}", String::from_utf8_lossy(&output.stderr));
    assert!(!output_text.contains("this failed") && !output_text.contains("no answer"), "{output_text}");
    let secret = part(&output_text, "Where will Ann propose?", "=== A long talk");
    assert!(secret.contains("Azera: ") && !secret.to_lowercase().contains("pier"), "Ben is told the secret: {secret}");
    let reminded = part(&output_text, "Ann in another-dm: Where will I", "Ben in lounge");
    assert!(reminded.contains("memories in the prompt") && !reminded.contains(" 0 memories"), "{reminded}");
    let energies: Vec<f64> = part(&output_text, "=== A long talk", "=== The night")
        .split("energy ")
        .skip(1)
        .filter_map(|rest| rest.get(..4)?.parse().ok())
        .collect();
    assert!(energies.is_sorted_by(|a, b| a > b), "it does not tire: {energies:?}");
    let (first, last) = (energies.first().expect("a talk"), energies.last().expect("a talk"));
    assert!(first - last > 0.3, "nobody would see that it tires: {energies:?}");
    let night = part(&output_text, "=== The night", "=== The morning");
    assert!(night.contains("posts a dream in journal: I dreamt"), "{night}");
    let dream = part(&format!("{night}\n"), "posts a dream in journal: ", "\n").trim().to_owned();
    let morning = part(&output_text, "What did you dream?", "/status");
    assert!(morning.contains("Azera: ") && morning.contains("/why"), "{morning}");
    let began: String = dream.chars().take(40).collect();
    assert!(morning.contains(&began), "the dream {dream:?} did not stand in front of the model: {morning}");
    let forgotten = part(&output_text, "/forget chat quotes", "That was the tour");
    assert!(forgotten.contains("Forgotten") && !forgotten.to_lowercase().contains("pier"), "{forgotten}");
}
