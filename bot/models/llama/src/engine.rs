use std::time::Instant;

use azera_model_api::{Error, FinishReason, LoraId, Priority, SessionKey};
use llama_cpp_2::llama_batch::LlamaBatch;
use llama_cpp_2::model::LlamaModel;
use llama_cpp_2::token::LlamaToken;
use llama_cpp_2::token::data_array::LlamaTokenDataArray;

use crate::cache::{Cache, Keep, Lease, Want};
use crate::config::STEP_TOKENS;
use crate::job::{Command, Job, Work};
use crate::lora::LoraSetKey;
use crate::plan::{self, Pace};
use crate::queue::Queue;
use crate::rotation::LoraRotation;
use crate::worker::Inbox;

/// A job with a sequence.
struct Running {
    job: Job,
    lease: Lease,
    /// The number of the job's tokens in the key-value cache.
    evaluated: usize,
    /// True if the prompt of a score is evaluated and its continuations are running.
    branching: bool,
}

impl Running {
    fn left(&self) -> usize {
        self.job.tokens.len() - self.evaluated
    }

    /// Returns true if a reply has begun and waits for its next token.
    fn is_generating(&self) -> bool {
        self.left() == 1 && matches!(&self.job.work, Work::Reply(reply) if reply.length.generated() > 0)
    }
}

/// The decode loop of a chat model. Each step evaluates one batch: the newest token of every running reply, and a share
/// of the waiting prompts. Background work is in the batch only while no foreground work runs, and its steps are short.
/// Work with different LoRAs is never in one batch; the sets of LoRAs take turns.
pub(crate) struct Engine<'m> {
    model: &'m LlamaModel,
    cache: Cache<'m>,
    batch: LlamaBatch<'static>,
    inbox: Inbox<Command>,
    queue: Queue<Box<Job>>,
    running: Vec<Running>,
    slots: usize,
    pace: Pace,
    rotation: LoraRotation,
    scratch: LlamaTokenDataArray,
    /// The batch rows whose logits choose a next token: the index in `running`, and the row in the batch.
    rows: Vec<(usize, i32)>,
}

impl<'m> Engine<'m> {
    pub(crate) fn new(model: &'m LlamaModel, cache: Cache<'m>, inbox: Inbox<Command>, slots: usize) -> Self {
        Self {
            model,
            cache,
            batch: LlamaBatch::new(STEP_TOKENS, 1),
            inbox,
            queue: Queue::new(),
            running: Vec::new(),
            slots,
            pace: Pace::new(),
            rotation: LoraRotation::new(Instant::now()),
            scratch: LlamaTokenDataArray::new(Vec::new(), false),
            rows: Vec::new(),
        }
    }

    /// Runs until it is stopped.
    pub(crate) fn run(mut self) {
        while self.listen() {
            self.sweep();
            self.admit();
            if let Err(error) = self.step() {
                tracing::error!(%error, "a decode step failed");
                self.fail_running(&error);
            }
        }
        for running in self.running.drain(..) {
            running.job.fail(Error::Stopped);
        }
        for job in self.queue.drain() {
            job.fail(Error::Stopped);
        }
        while let Ok(command) = self.inbox.commands.try_recv() {
            if let Command::Work(job) = command {
                job.fail(Error::Stopped);
            }
        }
        while self.cache.write_prefix() {}
    }

    /// Receives commands, and waits if there is no work. Returns false if the engine must stop.
    fn listen(&mut self) -> bool {
        loop {
            if self.inbox.is_stopped() {
                return false;
            }
            let idle = self.running.is_empty() && self.queue.is_empty();
            let command = match self.inbox.commands.try_recv() {
                Ok(command) => command,
                Err(_) if !idle => return true,
                // Prefixes are written to disk while nobody waits.
                Err(_) if self.cache.write_prefix() => continue,
                Err(_) => {
                    if let Err(error) = self.cache.kv.release_unused_loras() {
                        tracing::error!(%error, "cannot remove unused LoRAs from memory");
                    }
                    match self.inbox.commands.blocking_recv() {
                        Some(command) => command,
                        None => return false,
                    }
                }
            };
            match command {
                Command::Work(job) => self.queue.push(job.priority, job),
                Command::Forget(session, done) => {
                    self.forget(&session);
                    // A caller that left needs no answer.
                    done.send(()).ok();
                }
                Command::ForgetLora(lora, done) => {
                    self.forget_lora(&lora);
                    // A caller that left needs no answer.
                    done.send(()).ok();
                }
                Command::ReleaseLoras => {}
            }
        }
    }

    fn forget(&mut self, session: &SessionKey) {
        self.cache.forget(session);
        for running in &mut self.running {
            running.job.keep &= running.job.session.as_ref() != Some(session);
        }
        self.queue.retain_mut(|job| {
            job.keep &= job.session.as_ref() != Some(session);
            true
        });
    }

    fn forget_lora(&mut self, lora: &LoraId) {
        self.cache.forget_lora(lora);
        let leave_nothing = |job: &mut Job| {
            if job.set().is_some_and(|set| set.has(lora)) {
                job.keep = false;
                job.shared = None;
            }
        };
        self.running.iter_mut().for_each(|running| leave_nothing(&mut running.job));
        self.queue.retain_mut(|job| {
            leave_nothing(job);
            true
        });
    }

    /// Drops jobs that nobody waits for any more.
    fn sweep(&mut self) {
        self.queue.retain_mut(|job| !job.is_cancelled());
        for at in (0..self.running.len()).rev() {
            if self.running[at].job.is_cancelled() {
                self.end(at);
            }
        }
    }

    /// Gives sequences to waiting jobs.
    fn admit(&mut self) {
        while self.queue.has(Priority::Foreground) {
            if self.running.len() >= self.slots && !self.preempt() {
                return;
            }
            match self.admit_one(Priority::Foreground) {
                Admitted::Yes => {}
                Admitted::NoneMayGo => break,
                Admitted::NoRoom => {
                    if !self.preempt() {
                        return;
                    }
                }
            }
        }
        while self.running.len() < self.slots
            && !self.is_foreground()
            && self.queue.has(Priority::Background)
            && matches!(self.admit_one(Priority::Background), Admitted::Yes)
        {}
    }

    fn is_foreground(&self) -> bool {
        self.running.iter().any(|running| running.job.priority == Priority::Foreground)
    }

    fn admit_one(&mut self, priority: Priority) -> Admitted {
        let (running, cache) = (&self.running, &self.cache);
        let may_go = |job: &Job| {
            running.iter().all(|other| {
                // A session runs one request at a time, and waiting for a prefix that another job evaluates is cheaper
                // than evaluating it twice.
                let same_session = job.session.is_some() && job.session == other.job.session;
                let same_prefix = match (job.shared, other.job.shared) {
                    (Some(mine), Some(theirs)) => {
                        mine.key == theirs.key
                            && other.evaluated < theirs.len
                            && other.job.priority >= job.priority
                            && !cache.has_prefix(&mine.key)
                    }
                    _ => false,
                };
                !same_session && !same_prefix
            })
        };
        let Some(mut job) = self.queue.take(priority, |job| may_go(job)) else { return Admitted::NoneMayGo };
        let acquired = match job.parked.take() {
            Some(parked) => {
                let resumed = self.cache.resume(&parked, job.room);
                job.parked = Some(parked);
                resumed
            }
            None => self.cache.acquire(&Want {
                session: job.session.as_ref(),
                prompt: &job.tokens,
                shared: job.shared,
                set: job.set(),
                room: job.room,
            }),
        };
        match acquired {
            Ok(Some((lease, evaluated))) => {
                job.ticket = None;
                job.parked = None;
                if let Work::Reply(reply) = &mut job.work {
                    reply.cached.get_or_insert(evaluated);
                }
                self.running.push(Running { job: *job, lease, evaluated, branching: false });
                Admitted::Yes
            }
            Ok(None) if self.running.is_empty() => {
                job.fail(Error::Engine("the key-value cache has no room for this request".into()));
                Admitted::Yes
            }
            Ok(None) => {
                self.queue.push_front(priority, job);
                Admitted::NoRoom
            }
            Err(error) => {
                job.fail(error);
                Admitted::Yes
            }
        }
    }

    /// Preempts the newest background job. Returns false if there is none.
    fn preempt(&mut self) -> bool {
        let Some(at) = self.running.iter().rposition(|running| running.job.priority == Priority::Background) else {
            return false;
        };
        let mut running = self.running.remove(at);
        if let Work::Score(score) = &mut running.job.work {
            score.restart(&mut self.cache.kv);
            // The last token of the prompt is evaluated again for its logits.
            running.evaluated = running.evaluated.min(running.job.prompt_len - 1);
        }
        let evaluated = running.job.tokens.iter().take(running.evaluated).copied().collect();
        match self.cache.suspend(running.lease, evaluated, running.job.set().cloned()) {
            Ok(parked) => {
                running.job.parked = parked;
                self.queue.push_front(Priority::Background, Box::new(running.job));
            }
            Err(error) => running.job.fail(error),
        }
        true
    }

    /// Evaluates one batch and handles its results.
    fn step(&mut self) -> Result<(), Error> {
        let prompt_tokens = self.fill()?;
        if self.batch.n_tokens() == 0 {
            return Ok(());
        }
        let start = Instant::now();
        self.cache.kv.decode(&mut self.batch)?;
        self.publish()?;
        // Reading the first logits waits for the batch, so the time is measured after it.
        if let Some((_, row)) = self.rows.first() {
            self.cache.kv.logits(*row);
            self.pace.observe(prompt_tokens, start.elapsed().as_secs_f64() * 1_000.0);
        }
        let mut over: Vec<(usize, Result<Option<FinishReason>, Error>)> = Vec::new();
        for (at, row) in std::mem::take(&mut self.rows) {
            match self.take_token(at, row) {
                Ok(None) => {}
                Ok(Some(finish)) => over.push((at, Ok(Some(finish)))),
                Err(error) => over.push((at, Err(error))),
            }
        }
        for (at, running) in self.running.iter_mut().enumerate() {
            if let Work::Score(score) = &mut running.job.work
                && running.branching
                && score.collect(&mut self.cache.kv)
            {
                over.push((at, Ok(None)));
            }
        }
        over.sort_unstable_by_key(|(at, _)| *at);
        for (at, end) in over.into_iter().rev() {
            self.finish(at, end);
        }
        Ok(())
    }

    /// Fills the batch. Returns the number of prompt tokens in it.
    fn fill(&mut self) -> Result<usize, Error> {
        self.batch.clear();
        self.rows.clear();
        let foreground = self.is_foreground();
        let may_go = |running: &Running| !foreground || running.job.priority == Priority::Foreground;
        if !self.running.iter().any(may_go) {
            return Ok(0);
        }
        let with_set = self.choose(may_go)?;
        let eligible = |running: &Running| may_go(running) && running.job.set() == with_set.as_ref();
        // Jobs with other LoRAs also wait for their next token.
        let mut busy = self.running.iter().any(|running| may_go(running) && running.is_generating());
        for (at, running) in self.running.iter_mut().enumerate().filter(|(_, running)| eligible(running)) {
            if running.is_generating() {
                self.rows.push((at, self.batch.n_tokens()));
                add(&mut self.batch, running, 1)?;
            }
        }
        for running in self.running.iter_mut().filter(|running| eligible(running) && running.branching) {
            busy = true;
            let room = room(&self.batch)?;
            if let Work::Score(score) = &mut running.job.work {
                score.fill(&mut self.cache, &running.lease, running.job.prompt_len, &mut self.batch, room)?;
            }
        }
        let mut waiting: Vec<usize> = (0..self.running.len())
            .filter(|at| {
                let running = &self.running[*at];
                eligible(running) && running.left() > 0 && !running.is_generating()
            })
            .collect();
        waiting.sort_by_key(|at| self.running[*at].job.arrived);
        let room = room(&self.batch)?;
        // Live work that comes during a step of background work waits for the step's end.
        let budget = if busy || !foreground { self.pace.tokens(room) } else { room };
        let left: Vec<usize> = waiting.iter().map(|at| self.running[*at].left()).collect();
        let mut prompt_tokens = 0;
        for (at, count) in waiting.into_iter().zip(plan::share(budget, &left)) {
            let running = &mut self.running[at];
            if count == 0 {
                continue;
            }
            add(&mut self.batch, running, count)?;
            prompt_tokens += count;
            if running.left() == 0 {
                self.rows.push((at, self.batch.n_tokens() - 1));
            }
        }
        Ok(prompt_tokens)
    }

    /// Chooses the LoRAs of the next batch, and sets them.
    fn choose(&mut self, may_go: impl Fn(&Running) -> bool) -> Result<Option<LoraSetKey>, Error> {
        let with_work = self.running.iter().filter(|running| may_go(running)).map(|running| running.job.set());
        let set = self.rotation.next(with_work, Instant::now()).cloned();
        let mut loras = self.running.iter().filter_map(|running| running.job.lora.as_ref());
        let lora = loras.find(|lora| Some(&lora.key) == set.as_ref());
        self.cache.kv.set_loras(lora)?;
        Ok(set)
    }

    /// Shares prefixes whose evaluation is complete.
    fn publish(&mut self) -> Result<(), Error> {
        for running in &mut self.running {
            if let Some(shared) = running.job.shared
                && running.evaluated >= shared.len
                && let Some(tokens) = running.job.tokens.get(..shared.len)
            {
                self.cache.publish(&mut running.lease, shared.key, tokens, running.job.set())?;
                running.job.shared = None;
            }
        }
        Ok(())
    }

    /// Handles the result of a row: a reply's next token, or the start of a score's continuations.
    fn take_token(&mut self, at: usize, row: i32) -> Result<Option<FinishReason>, Error> {
        let Some(running) = self.running.get_mut(at) else { return Ok(None) };
        let logits = self.cache.kv.logits(row);
        match &mut running.job.work {
            Work::Reply(reply) => {
                let constrained = !reply.text.is_thinking();
                let token = match reply.length.next_of_closing() {
                    Some(token) => token,
                    None => reply.sampler.sample(logits, constrained, &mut self.scratch)?,
                };
                running.job.tokens.push(token);
                let vocab = self.model.vocab();
                let end = vocab.is_eog(token);
                Ok(reply.take(end, &piece(self.model, token), Instant::now()))
            }
            Work::Score(score) => {
                score.begin(logits);
                running.branching = true;
                Ok(None)
            }
        }
    }

    /// Ends a job, successfully or with an error of its own.
    fn finish(&mut self, at: usize, end: Result<Option<FinishReason>, Error>) {
        let Running { job, lease, evaluated, .. } = self.running.remove(at);
        let set = job.set().cloned();
        let Job { priority: _, arrived, session, keep, mut tokens, prompt_len, work, .. } = job;
        tokens.truncate(evaluated);
        self.cache.release(lease, session.filter(|_| keep).map(|session| Keep { session, tokens, set }));
        match (work, end) {
            (Work::Reply(reply), Ok(finish)) => {
                reply.finish(finish.unwrap_or(FinishReason::Length), prompt_len, arrived, Instant::now());
            }
            (Work::Reply(reply), Err(error)) => reply.sink.fail(error),
            (Work::Score(score), Ok(_)) => score.finish(),
            (Work::Score(score), Err(error)) => score.fail(error),
        }
    }

    /// Ends a job that nobody waits for. Its evaluated tokens stay with its session.
    fn end(&mut self, at: usize) {
        let Running { mut job, lease, evaluated, .. } = self.running.remove(at);
        if let Work::Score(score) = &mut job.work {
            score.abandon(&mut self.cache.kv);
        }
        job.tokens.truncate(evaluated);
        let set = job.set().cloned();
        let tokens = job.tokens;
        self.cache.release(lease, job.session.filter(|_| job.keep).map(|session| Keep { session, tokens, set }));
    }

    /// Fails every running job. After a failed step, the content of the sequences is unknown.
    fn fail_running(&mut self, error: &Error) {
        for mut running in std::mem::take(&mut self.running) {
            if let Work::Score(score) = &mut running.job.work {
                score.abandon(&mut self.cache.kv);
            }
            self.cache.release(running.lease, None);
            running.job.fail(Error::Engine(error.to_string()));
        }
    }
}

enum Admitted {
    Yes,
    NoRoom,
    /// Every waiting job waits for a running one.
    NoneMayGo,
}

/// Adds the next `count` tokens of a job to the batch, and requests logits after its last.
fn add(batch: &mut LlamaBatch<'_>, running: &mut Running, count: usize) -> Result<(), Error> {
    let last = running.job.tokens.len();
    for (at, token) in running.job.tokens.iter().enumerate().skip(running.evaluated).take(count) {
        let position = i32::try_from(at).map_err(|_| Error::Engine("a position does not fit".into()))?;
        batch
            .add(*token, position, &[running.lease.sequence], at + 1 == last)
            .map_err(|error| Error::Engine(error.to_string()))?;
    }
    running.evaluated += count;
    Ok(())
}

fn room(batch: &LlamaBatch<'_>) -> Result<usize, Error> {
    let used = usize::try_from(batch.n_tokens()).map_err(|_| Error::Engine("a batch has a negative size".into()))?;
    Ok(STEP_TOKENS.saturating_sub(used))
}

/// Returns the bytes of a token. The tags around thinking count as text, even if they are control tokens.
fn piece(model: &LlamaModel, token: LlamaToken) -> Vec<u8> {
    let vocab = model.vocab();
    let bytes = vocab.token_to_piece(token, false, None);
    if bytes.is_empty() && vocab.is_control(token) {
        let tag = vocab.token_to_piece(token, true, None);
        if matches!(tag.as_slice(), b"<think>" | b"</think>") {
            return tag;
        }
    }
    bytes
}
