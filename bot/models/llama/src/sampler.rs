use std::collections::{HashMap, VecDeque};

use azera_model_api::{Error, Grammar, Sampling};
use llama_cpp_2::model::LlamaModel;
use llama_cpp_2::sampling::LlamaSampler;
use llama_cpp_2::token::LlamaToken;
use llama_cpp_2::token::data::LlamaTokenData;
use llama_cpp_2::token::data_array::LlamaTokenDataArray;

use crate::schema;

/// The largest grammar, in bytes, including converted ones.
pub const MAX_GRAMMAR_BYTES: usize = 256 << 10;

/// With this seed, llama.cpp draws a random one.
const DRAW_SEED: u32 = u32::MAX;

/// Chooses the tokens of one reply.
pub(crate) struct Sampler {
    penalties: Penalties,
    phrases: Phrases,
    /// `None` is greedy.
    chain: Option<LlamaSampler>,
    grammar: Option<LlamaSampler>,
}

impl Sampler {
    /// Creates a sampler. `said` contains the tokens of the model's earlier replies in the prompt.
    pub(crate) fn new(
        model: &LlamaModel,
        sampling: &Sampling,
        grammar: Option<&Grammar>,
        said: Vec<Vec<LlamaToken>>,
    ) -> Result<Self, Error> {
        validate(sampling)?;
        let chain = (sampling.temperature > 0.0).then(|| {
            let mut chain = Vec::new();
            if sampling.top_k > 0 {
                chain.push(LlamaSampler::top_k(i32::try_from(sampling.top_k).unwrap_or(i32::MAX)));
            }
            if sampling.top_p < 1.0 {
                chain.push(LlamaSampler::top_p(sampling.top_p, 1));
            }
            if sampling.min_p > 0.0 {
                chain.push(LlamaSampler::min_p(sampling.min_p, 1));
            }
            chain.push(LlamaSampler::temp(sampling.temperature));
            chain.push(LlamaSampler::dist(match sampling.seed {
                // A request with this value must not get a random seed.
                Some(DRAW_SEED) => 0,
                Some(seed) => seed,
                None => DRAW_SEED,
            }));
            LlamaSampler::chain(chain, true)
        });
        let grammar = grammar.map(|grammar| parse(model, grammar)).transpose()?;
        let phrases = Phrases::new(sampling, said);
        Ok(Self { penalties: Penalties::new(sampling), phrases, chain, grammar })
    }

    /// Returns true if a grammar constrains the reply.
    pub(crate) fn has_grammar(&self) -> bool {
        self.grammar.is_some()
    }

    /// Chooses the next token from the logits of the whole vocabulary. If `constrained` is false, as in thinking, the
    /// grammar is ignored. `scratch` saves an allocation of the vocabulary's size.
    pub(crate) fn sample(
        &mut self,
        logits: &[f32],
        constrained: bool,
        scratch: &mut LlamaTokenDataArray,
    ) -> Result<LlamaToken, Error> {
        let token = match self.grammar.as_mut().filter(|_| constrained) {
            None => choose(&mut self.chain, &self.penalties, &self.phrases, logits, scratch)?,
            Some(grammar) => {
                // Try a free choice first: if the grammar allows it, the whole vocabulary need not be matched against
                // the grammar.
                let free = choose(&mut self.chain, &self.penalties, &self.phrases, logits, scratch)?;
                let token = if allows(grammar, free) {
                    free
                } else {
                    fill(scratch, logits, &self.penalties, &self.phrases);
                    scratch.apply_sampler(grammar);
                    scratch.data.retain(|candidate| candidate.logit() > f32::NEG_INFINITY);
                    select(&mut self.chain, scratch)
                        .ok_or_else(|| Error::Engine("the grammar allows no further token".into()))?
                };
                // Accepting a token that the grammar forbids would abort the process, so only checked tokens get here.
                grammar.accept(token);
                token
            }
        };
        self.penalties.accept(token);
        self.phrases.accept(token);
        Ok(token)
    }
}

fn choose(
    chain: &mut Option<LlamaSampler>,
    penalties: &Penalties,
    phrases: &Phrases,
    logits: &[f32],
    scratch: &mut LlamaTokenDataArray,
) -> Result<LlamaToken, Error> {
    fill(scratch, logits, penalties, phrases);
    select(chain, scratch).ok_or_else(|| Error::Engine("the model gave no usable probabilities".into()))
}

/// Returns the token that the chain selects, or the likeliest token without a chain. `None` if no candidate is left.
fn select(chain: &mut Option<LlamaSampler>, candidates: &mut LlamaTokenDataArray) -> Option<LlamaToken> {
    match chain {
        Some(chain) => {
            if !candidates.data.iter().any(|candidate| candidate.logit() > f32::NEG_INFINITY) {
                return None;
            }
            candidates.apply_sampler(chain);
            candidates.selected_token()
        }
        None => {
            let mut best: Option<LlamaTokenData> = None;
            for candidate in &candidates.data {
                if best.is_none_or(|best| candidate.logit() > best.logit()) {
                    best = Some(*candidate);
                }
            }
            best.map(|best| best.id())
        }
    }
}

fn fill(scratch: &mut LlamaTokenDataArray, logits: &[f32], penalties: &Penalties, phrases: &Phrases) {
    scratch.data.clear();
    scratch.data.extend((0..).zip(logits).map(|(id, logit)| LlamaTokenData::new(LlamaToken::new(id), *logit, 0.0)));
    scratch.selected = None;
    scratch.sorted = false;
    penalties.apply(&mut scratch.data);
    phrases.apply(&mut scratch.data);
}

fn allows(grammar: &mut LlamaSampler, token: LlamaToken) -> bool {
    let mut one = LlamaTokenDataArray::new(vec![LlamaTokenData::new(token, 0.0, 0.0)], false);
    one.apply_sampler(grammar);
    one.data.first().is_some_and(|candidate| candidate.logit() > f32::NEG_INFINITY)
}

/// Lowers the logits of tokens in the reply by the formula of llama.cpp's penalties sampler: the repeat penalty divides
/// positive logits and multiplies negative ones, then the frequency penalty is subtracted for each occurrence and the
/// presence penalty once. llama.cpp's sampler is not used because it looks up every token of the vocabulary.
struct Penalties {
    last_n: usize,
    repeat: f32,
    frequency: f32,
    presence: f32,
    recent: VecDeque<LlamaToken>,
    counts: HashMap<LlamaToken, u16>,
}

impl Penalties {
    fn new(sampling: &Sampling) -> Self {
        let neutral =
            sampling.repeat_penalty == 1.0 && sampling.frequency_penalty == 0.0 && sampling.presence_penalty == 0.0;
        Self {
            last_n: if neutral { 0 } else { sampling.penalty_last_n as usize },
            repeat: sampling.repeat_penalty,
            frequency: sampling.frequency_penalty,
            presence: sampling.presence_penalty,
            recent: VecDeque::new(),
            counts: HashMap::new(),
        }
    }

    fn apply(&self, candidates: &mut [LlamaTokenData]) {
        for (token, count) in &self.counts {
            // The candidates are still in the order of the vocabulary.
            let Some(candidate) = usize::try_from(token.0).ok().and_then(|id| candidates.get_mut(id)) else { continue };
            let logit = candidate.logit();
            let repeated = if logit > 0.0 { logit / self.repeat } else { logit * self.repeat };
            candidate.set_logit(repeated - f32::from(*count) * self.frequency - self.presence);
        }
    }

    fn accept(&mut self, token: LlamaToken) {
        if self.last_n == 0 {
            return;
        }
        self.recent.push_back(token);
        *self.counts.entry(token).or_default() += 1;
        if self.recent.len() > self.last_n
            && let Some(old) = self.recent.pop_front()
            && let Some(count) = self.counts.get_mut(&old)
        {
            *count -= 1;
            if *count == 0 {
                self.counts.remove(&old);
            }
        }
    }
}

/// The most tokens of the model's own words in which phrases are searched. Older ones are dropped.
const MAX_SAID_TOKENS: usize = 4_096;

/// Precedes the first token of a reply, so that two equal beginnings count as a repeated phrase. No vocabulary contains
/// it.
const REPLY_START: LlamaToken = LlamaToken(-1);

/// Discourages continuing a phrase that the model has said before in the conversation.
struct Phrases {
    penalty: f32,
    free: usize,
    /// Earlier replies and the present one, each after a [`REPLY_START`].
    said: Vec<LlamaToken>,
}

impl Phrases {
    fn new(sampling: &Sampling, earlier: Vec<Vec<LlamaToken>>) -> Self {
        let mut said = Vec::new();
        if sampling.phrase_penalty > 0.0 {
            for reply in earlier {
                said.push(REPLY_START);
                said.extend(reply);
            }
            said.drain(..said.len().saturating_sub(MAX_SAID_TOKENS));
            said.push(REPLY_START);
        }
        Self { penalty: sampling.phrase_penalty, free: sampling.phrase_tokens as usize, said }
    }

    fn accept(&mut self, token: LlamaToken) {
        if self.penalty > 0.0 {
            self.said.push(token);
        }
    }

    fn apply(&self, candidates: &mut [LlamaTokenData]) {
        // For each token, the length of the longest phrase that it would continue.
        let mut longest: HashMap<LlamaToken, usize> = HashMap::new();
        for next in 1..self.said.len() {
            let before = self.said.iter().take(next).rev();
            let length = before.zip(self.said.iter().rev()).take_while(|(a, b)| a == b).count();
            if let Some(token) = self.said.get(next)
                && length >= self.free
                && *token != REPLY_START
            {
                let known = longest.entry(*token).or_default();
                *known = length.max(*known);
            }
        }
        for (token, length) in longest {
            // The candidates are still in the order of the vocabulary.
            let Some(candidate) = usize::try_from(token.0).ok().and_then(|id| candidates.get_mut(id)) else { continue };
            let growth = Sampling::PHRASE_GROWTH.powi(i32::try_from(length - self.free).unwrap_or(i32::MAX).min(16));
            candidate.set_logit(candidate.logit() - self.penalty * growth);
        }
    }
}

fn parse(model: &LlamaModel, grammar: &Grammar) -> Result<LlamaSampler, Error> {
    let converted;
    let text = match grammar {
        Grammar::Gbnf(text) => text,
        Grammar::JsonSchema(schema) => {
            converted = schema::grammar(schema)?;
            &converted
        }
    };
    if text.len() > MAX_GRAMMAR_BYTES {
        return Err(Error::Invalid(format!("the grammar has more than {MAX_GRAMMAR_BYTES} bytes")));
    }
    LlamaSampler::grammar(model, text, "root")
        .map_err(|_| Error::Invalid("the grammar cannot be parsed or has no usable rule `root`".into()))
}

fn validate(sampling: &Sampling) -> Result<(), Error> {
    let fields = [
        ("temperature", sampling.temperature, 0.0..=f32::MAX),
        ("top_p", sampling.top_p, f32::MIN_POSITIVE..=1.0),
        ("min_p", sampling.min_p, 0.0..=1.0),
        ("repeat_penalty", sampling.repeat_penalty, f32::MIN_POSITIVE..=f32::MAX),
        ("frequency_penalty", sampling.frequency_penalty, f32::MIN..=f32::MAX),
        ("presence_penalty", sampling.presence_penalty, f32::MIN..=f32::MAX),
        ("phrase_penalty", sampling.phrase_penalty, 0.0..=f32::MAX),
    ];
    for (name, value, range) in fields {
        if !range.contains(&value) {
            return Err(Error::Invalid(format!("{name} is {value}, outside {:e} to {:e}", range.start(), range.end())));
        }
    }
    if sampling.phrase_tokens == 0 {
        return Err(Error::Invalid("phrase_tokens must be above zero, or every token would be a phrase".into()));
    }
    if sampling.penalty_last_n > u32::from(u16::MAX) {
        return Err(Error::Invalid(format!("penalty_last_n is more than {}", u16::MAX)));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn continuing_an_earlier_phrase_is_penalized() {
        let sampling = Sampling { phrase_penalty: 1.0, phrase_tokens: 2, ..Sampling::default() };
        let tokens = |ids: &[i32]| ids.iter().map(|id| LlamaToken(*id)).collect::<Vec<_>>();
        let check = |said: &[i32], want: [f32; 4]| {
            let mut phrases = Phrases::new(&sampling, vec![tokens(&[1, 2, 3])]);
            tokens(said).into_iter().for_each(|token| phrases.accept(token));
            let mut candidates: Vec<_> = (0..4).map(|id| LlamaTokenData::new(LlamaToken(id), 0.0, 0.0)).collect();
            phrases.apply(&mut candidates);
            assert_eq!(candidates.iter().map(LlamaTokenData::logit).collect::<Vec<_>>(), want, "{said:?}");
        };
        check(&[], [0.0; 4]);
        check(&[1], [0.0, 0.0, -1.0, 0.0]);
        check(&[0, 2], [0.0; 4]);
        check(&[1, 2], [0.0, 0.0, 0.0, -1.75]);
    }

    fn penalized(sampling: &Sampling, said: &[i32], logits: &[f32]) -> Vec<f32> {
        let mut penalties = Penalties::new(sampling);
        for token in said {
            penalties.accept(LlamaToken::new(*token));
        }
        let mut scratch = LlamaTokenDataArray::new(Vec::new(), false);
        fill(&mut scratch, logits, &penalties, &Phrases::new(sampling, Vec::new()));
        scratch.data.iter().map(LlamaTokenData::logit).collect()
    }

    #[test]
    fn penalties_follow_the_formula() {
        let check = |sampling: &Sampling, said: &[i32], expected: &[f32]| {
            assert_eq!(penalized(sampling, said, &[2.0, -2.0, 1.0]), expected, "{sampling:?} after {said:?}");
        };
        let neutral = Sampling::greedy();
        check(&neutral, &[0, 1], &[2.0, -2.0, 1.0]);
        let repeat = Sampling { repeat_penalty: 2.0, penalty_last_n: 2, ..Sampling::greedy() };
        check(&repeat, &[0, 1], &[1.0, -4.0, 1.0]);
        check(&repeat, &[0, 1, 2], &[2.0, -4.0, 0.5]);
        check(&repeat, &[0, 0, 0], &[1.0, -2.0, 1.0]);
        let counted = Sampling { frequency_penalty: 0.5, presence_penalty: 0.25, ..Sampling::greedy() };
        check(&counted, &[2, 2], &[2.0, -2.0, -0.25]);
    }

    #[test]
    fn parameters_out_of_range_are_rejected() {
        let check = |sampling: Sampling| assert!(matches!(validate(&sampling), Err(Error::Invalid(_))), "{sampling:?}");
        let base = Sampling::default();
        validate(&base).unwrap();
        check(Sampling { temperature: f32::NAN, ..base.clone() });
        check(Sampling { temperature: -1.0, ..base.clone() });
        check(Sampling { temperature: f32::INFINITY, ..base.clone() });
        check(Sampling { top_p: 0.0, ..base.clone() });
        check(Sampling { min_p: 1.5, ..base.clone() });
        check(Sampling { repeat_penalty: 0.0, ..base.clone() });
        check(Sampling { penalty_last_n: 1 << 20, ..base });
    }
}
