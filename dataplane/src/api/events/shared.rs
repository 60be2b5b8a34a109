//! What readers of one key that stand at one position are given, asked of PostgreSQL once: a thousand pages of a browser that one key opened are
//! a thousand streams, and a key may own a thousand webhook subscriptions.

use std::collections::HashMap;
use std::hash::Hash;
use std::ops::Deref;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use parking_lot::Mutex;
use rowgate_core::name::Ulid;
use rowgate_core::problem::Problem;
use rowgate_core::secret::Credential;
use rowgate_pg::tenant::events::{Page, Position};
use tokio::sync::OnceCell;
use tokio::time::Instant;

use super::given::Given;
use super::read;
use super::request::Source;
use crate::auth::credential::{Caller, SaidRole};
use crate::auth::key_context::KeyContext;

/// An answer is given to others who ask this long after it was asked for: all who are woken by one tick have asked by then.
pub(crate) const PAGE_AGE: Duration = Duration::from_millis(100);
/// The same of a key that was looked up: a reader counts from that moment until it looks again.
const KEY_AGE: Duration = Duration::from_millis(500);

/// What two readers have in common that are given the same.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct Question {
    tenant: Ulid,
    credential: Credential,
    /// Compared with the key's whenever it is asked.
    role: SaidRole,
    sources: Vec<Source>,
    ops: Vec<String>,
    from: Position,
}

/// A page as it was captured, and what of it is given.
pub(crate) struct GivenPage {
    pub(crate) page: Page,
    pub(crate) given: Given,
}

/// Of all readers of a replica that stay.
pub(crate) struct SharedReads {
    pages: SharedAnswers<Question, Option<Arc<GivenPage>>, Problem>,
    keys: SharedAnswers<(Ulid, Credential), KeyContext, Problem>,
    n_readers: AtomicUsize,
}

/// Held by a reader as long as it stays: with the last one go the answers.
pub(crate) struct Reader(Arc<SharedReads>);

impl Reader {
    pub(crate) fn new(reads: Arc<SharedReads>) -> Reader {
        reads.n_readers.fetch_add(1, Ordering::Relaxed);
        Reader(reads)
    }
}

impl Deref for Reader {
    type Target = SharedReads;

    fn deref(&self) -> &SharedReads {
        &self.0
    }
}

impl Drop for Reader {
    fn drop(&mut self) {
        if self.0.n_readers.fetch_sub(1, Ordering::Relaxed) == 1 {
            self.0.pages.clear();
            self.0.keys.clear();
        }
    }
}

impl Default for SharedReads {
    fn default() -> SharedReads {
        let (pages, keys) = (SharedAnswers::new(PAGE_AGE), SharedAnswers::new(KEY_AGE));
        SharedReads { pages, keys, n_readers: AtomicUsize::default() }
    }
}

impl SharedReads {
    /// What the caller is given behind `from`, and when that was asked for: of at most `limit` changes, or as many as the one wanted who asked
    /// for it. `None`: the log gave up some of them meanwhile.
    pub(crate) async fn page(
        &self,
        caller: &Caller,
        from: Position,
        (sources, ops): (&[Source], &[String]),
        limit: i32,
    ) -> Result<Option<(Arc<GivenPage>, Instant)>, Problem> {
        let question = Question {
            tenant: caller.tenant.id.clone(),
            credential: caller.credential.clone(),
            role: caller.role.clone(),
            sources: sources.to_vec(),
            ops: ops.to_vec(),
            from,
        };
        let ask = async || {
            let Some(page) = read(caller, from, sources, ops, limit).await? else { return Ok(None) };
            let given = Given::ask(caller, sources, &page).await?;
            Ok(Some(Arc::new(GivenPage { page, given })))
        };
        let (page, asked) = self.pages.get(question, ask).await?;
        if let Some(page) = &page {
            page.given.count(&caller.tenant.event_tail.counts);
        }
        Ok(page.map(|page| (page, asked)))
    }

    /// The caller's key by the word of the database, and when that was asked for.
    pub(super) async fn key(&self, caller: &Caller) -> Result<(KeyContext, Instant), Problem> {
        let question = (caller.tenant.id.clone(), caller.credential.clone());
        self.keys.get(question, || caller.tenant.authenticate_fresh(&caller.credential)).await
    }

    /// Forgets old answers.
    pub(super) fn sweep(&self) {
        self.pages.sweep();
        self.keys.sweep();
    }
}

/// Answers by their questions, each asked once for all who ask within `age`.
struct SharedAnswers<Q, A, E> {
    age: Duration,
    asked: Mutex<Questions<Q, A, E>>,
}

struct Questions<Q, A, E> {
    all: HashMap<Q, Arc<Asked<A, E>>>,
    swept: Instant,
}

struct Asked<A, E> {
    at: Instant,
    answer: OnceCell<Result<A, E>>,
}

impl<Q: Clone + Eq + Hash, A: Clone, E: Clone> SharedAnswers<Q, A, E> {
    fn new(age: Duration) -> SharedAnswers<Q, A, E> {
        let questions = Questions { all: HashMap::new(), swept: Instant::now() };
        SharedAnswers { age, asked: Mutex::new(questions) }
    }

    /// The answer, and when it was asked for. A failure is told to all who wait for it, and who comes later asks again.
    async fn get<F: Future<Output = Result<A, E>>>(
        &self,
        question: Q,
        ask: impl FnOnce() -> F,
    ) -> Result<(A, Instant), E> {
        let asked = self.asked(question.clone());
        let answer = asked.answer.get_or_init(ask).await.clone();
        if answer.is_err() {
            self.forget(&question, &asked);
        }
        Ok((answer?, asked.at))
    }

    fn asked(&self, question: Q) -> Arc<Asked<A, E>> {
        let mut questions = self.asked.lock();
        questions.sweep(self.age);
        let new = || Arc::new(Asked { at: Instant::now(), answer: OnceCell::new() });
        let asked = questions.all.entry(question).or_insert_with(new);
        if self.age <= asked.at.elapsed() {
            *asked = new();
        }
        asked.clone()
    }

    fn forget(&self, question: &Q, asked: &Arc<Asked<A, E>>) {
        let mut questions = self.asked.lock();
        if questions.all.get(question).is_some_and(|it| Arc::ptr_eq(it, asked)) {
            questions.all.remove(question);
        }
    }

    fn sweep(&self) {
        self.asked.lock().sweep(self.age);
    }

    fn clear(&self) {
        self.asked.lock().all.clear();
    }
}

impl<Q, A, E> Questions<Q, A, E> {
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
    use std::sync::atomic::AtomicU32;

    use super::*;

    /// Two who ask the same at once, one who asks something else, and one who asks the first later: how many questions came before that of each answer.
    async fn asked(age: Duration) -> [u32; 4] {
        let answers = SharedAnswers::<&str, u32, ()>::new(age);
        let n_asked = AtomicU32::new(0);
        let ask = async |question| {
            let ask = || async {
                tokio::task::yield_now().await;
                Ok(n_asked.fetch_add(1, Ordering::Relaxed))
            };
            answers.get(question, ask).await.expect("an answer").0
        };
        let (one, two, other) = tokio::join!(ask("a"), ask("a"), ask("b"));
        [one, two, other, ask("a").await]
    }

    #[tokio::test]
    async fn a_question_is_asked_once_until_its_answer_is_old() {
        let [one, two, other, later] = asked(Duration::from_secs(60)).await;
        assert_eq!([two, later], [one, one]);
        assert_ne!(other, one);
        let mut all = asked(Duration::ZERO).await;
        all.sort_unstable();
        assert_eq!(all, [0, 1, 2, 3]);
    }

    #[tokio::test]
    async fn a_failure_is_told_to_those_who_wait_and_not_later() {
        let answers = SharedAnswers::<(), u32, u32>::new(PAGE_AGE);
        let n_asked = AtomicU32::new(0);
        let fail = || {
            answers.get((), || async {
                tokio::task::yield_now().await;
                Err(n_asked.fetch_add(1, Ordering::Relaxed))
            })
        };
        let (one, two) = tokio::join!(fail(), fail());
        assert_eq!((one.err(), two.err()), (Some(0), Some(0)));
        assert_eq!(answers.get((), async || Ok(1)).await.map(|it| it.0), Ok(1));
    }
}
