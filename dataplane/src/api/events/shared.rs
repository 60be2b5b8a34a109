//! What readers of one key that stand at one position are given, asked of PostgreSQL once: a thousand pages of a browser that one key opened are
//! a thousand streams.

use std::collections::HashMap;
use std::hash::Hash;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use rowgate_core::name::Ulid;
use rowgate_core::problem::Problem;
use rowgate_core::secret::Credential;
use rowgate_pg::tenant::events::Position;
use tokio::sync::OnceCell;
use tokio::time::Instant;

use super::given::Given;
use super::read;
use super::request::Source;
use crate::auth::credential::Caller;
use crate::auth::key_context::KeyContext;

/// An answer is given to others who ask this long after it was asked for: all who are woken by one tick have asked by then.
const PAGE_AGE: Duration = Duration::from_millis(100);
/// The same of a key that was looked up: a reader counts from that moment until it looks again.
const KEY_AGE: Duration = Duration::from_millis(500);

/// What two readers have in common that are given the same.
#[derive(Debug, PartialEq, Eq, Hash)]
struct Question {
    tenant: Ulid,
    credential: Credential,
    sources: Vec<Source>,
    ops: Vec<String>,
    from: Position,
}

/// A page as it was given, and where the next begins.
pub(super) struct GivenPage {
    pub(super) given: Given,
    pub(super) next: Position,
    /// Of `next`.
    pub(super) generation: i32,
}

/// Of all readers of a replica that stay.
pub(crate) struct SharedReads {
    pages: SharedAnswers<Question, Option<Arc<GivenPage>>>,
    keys: SharedAnswers<(Ulid, Credential), KeyContext>,
}

impl Default for SharedReads {
    fn default() -> SharedReads {
        SharedReads { pages: SharedAnswers::new(PAGE_AGE), keys: SharedAnswers::new(KEY_AGE) }
    }
}

impl SharedReads {
    /// What the caller is given behind `from`, of at most `limit` changes. `None`: the log gave up some of them meanwhile.
    pub(super) async fn page(
        &self,
        caller: &Caller,
        from: Position,
        (sources, ops): (&[Source], &[String]),
        limit: i32,
    ) -> Result<Option<Arc<GivenPage>>, Problem> {
        let question = Question {
            tenant: caller.tenant.id.clone(),
            credential: caller.credential.clone(),
            sources: sources.to_vec(),
            ops: ops.to_vec(),
            from,
        };
        let ask = async || {
            let Some(page) = read(caller, from, sources, ops, limit).await? else { return Ok(None) };
            let given = Given::ask(caller, sources, &page).await?;
            Ok(Some(Arc::new(GivenPage { given, next: page.next, generation: page.generation })))
        };
        let (page, _) = self.pages.get(question, ask).await?;
        if let Some(page) = &page {
            page.given.count(&caller.tenant.event_tail.counts);
        }
        Ok(page)
    }

    /// The caller's key by the word of the database, and when that was asked for.
    pub(super) async fn key(&self, caller: &Caller) -> Result<(KeyContext, Instant), Problem> {
        let question = (caller.tenant.id.clone(), caller.credential.clone());
        self.keys.get(question, || caller.tenant.authenticate_fresh(&caller.credential)).await
    }

    /// Forgets what nobody is given any more.
    pub(super) fn sweep(&self) {
        self.pages.sweep();
        self.keys.sweep();
    }
}

/// Answers by their questions, each asked once for all who ask within `age`.
struct SharedAnswers<Q, A> {
    age: Duration,
    asked: Mutex<Questions<Q, A>>,
}

struct Questions<Q, A> {
    all: HashMap<Q, Arc<Asked<A>>>,
    swept: Instant,
}

struct Asked<A> {
    at: Instant,
    answer: OnceCell<A>,
}

impl<Q: Eq + Hash, A: Clone> SharedAnswers<Q, A> {
    fn new(age: Duration) -> SharedAnswers<Q, A> {
        let questions = Questions { all: HashMap::new(), swept: Instant::now() };
        SharedAnswers { age, asked: Mutex::new(questions) }
    }

    /// The answer, and when it was asked for. A failure is told to whoever asked; the next one who waits asks again.
    async fn get<E, F: Future<Output = Result<A, E>>>(
        &self,
        question: Q,
        ask: impl FnOnce() -> F,
    ) -> Result<(A, Instant), E> {
        let asked = self.asked(question);
        let answer = asked.answer.get_or_try_init(ask).await?;
        Ok((answer.clone(), asked.at))
    }

    fn asked(&self, question: Q) -> Arc<Asked<A>> {
        let mut questions = self.asked.lock();
        questions.sweep(self.age);
        let new = || Arc::new(Asked { at: Instant::now(), answer: OnceCell::new() });
        let asked = questions.all.entry(question).or_insert_with(new);
        if self.age <= asked.at.elapsed() {
            *asked = new();
        }
        asked.clone()
    }

    fn sweep(&self) {
        self.asked.lock().sweep(self.age);
    }
}

impl<Q, A> Questions<Q, A> {
    /// Not more often than answers grow old, since it looks at all of them.
    fn sweep(&mut self, age: Duration) {
        if age <= self.swept.elapsed() {
            self.all.retain(|_, asked| asked.at.elapsed() < age);
            self.swept = Instant::now();
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU32, Ordering};

    use tokio::time::advance;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_question_is_asked_once_for_all_until_its_answer_is_old() {
        let answers = SharedAnswers::<&str, u32>::new(PAGE_AGE);
        let n_asked = AtomicU32::new(0);
        let ask = |question| {
            answers.get(question, || async {
                tokio::task::yield_now().await;
                Ok::<_, ()>(n_asked.fetch_add(1, Ordering::Relaxed))
            })
        };
        let (one, two, other) = tokio::join!(ask("a"), ask("a"), ask("b"));
        let values: Vec<u32> = [one, two, other].into_iter().map(|it| it.expect("an answer").0).collect();
        assert_eq!(values[0], values[1]);
        assert_ne!(values[0], values[2]);
        advance(PAGE_AGE).await;
        assert_eq!(ask("a").await.map(|it| it.0), Ok(2));
        assert_eq!(answers.asked.lock().all.len(), 1, "old answers are forgotten");
    }

    #[tokio::test]
    async fn a_failure_is_not_shared() {
        let answers = SharedAnswers::<(), u32>::new(PAGE_AGE);
        assert_eq!(answers.get((), async || Err("no")).await, Err("no"));
        let answer = answers.get((), async || Ok::<_, &str>(1)).await;
        assert_eq!(answer.map(|it| it.0), Ok(1));
    }
}
