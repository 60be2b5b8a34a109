//! Connections that wait for the next request to the same scheme, host and port. They are few, and none grows old.

use std::collections::HashMap;
use std::time::Duration;

use parking_lot::Mutex;
use rowgate_core::webhook::destination::Destination;

use super::exchange::Connection;

const MAX_IDLE: usize = 256;
const MAX_IDLE_OF_HOST: usize = 16;

#[derive(Default)]
pub(super) struct Idle(Mutex<HashMap<Key, Vec<Connection>>>);

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) struct Key {
    is_https: bool,
    host: String,
    port: u16,
}

impl Key {
    pub(super) fn of(destination: &Destination) -> Key {
        let (is_https, port) = (destination.is_https(), destination.port());
        Key { is_https, host: destination.host().to_owned(), port }
    }
}

impl Idle {
    /// The one that was used last, if it is younger than `max_age` and open.
    pub(super) fn take(&self, key: &Key, max_age: Duration) -> Option<Connection> {
        let mut idle = self.0.lock();
        let of_host = idle.get_mut(key)?;
        let found =
            std::iter::from_fn(|| of_host.pop()).find_map(|mut it| usable(&mut it, max_age).then_some(it));
        if of_host.is_empty() {
            idle.remove(key);
        }
        found
    }

    pub(super) fn put(&self, key: Key, mut connection: Connection, max_age: Duration) {
        let mut idle = self.0.lock();
        idle.retain(|_, of_host| {
            of_host.retain_mut(|it| usable(it, max_age));
            !of_host.is_empty()
        });
        let n_idle: usize = idle.values().map(Vec::len).sum();
        let n_of_host = idle.get(&key).map_or(0, Vec::len);
        if n_idle < MAX_IDLE && n_of_host < MAX_IDLE_OF_HOST && usable(&mut connection, max_age) {
            idle.entry(key).or_default().push(connection);
        }
    }
}

fn usable(connection: &mut Connection, max_age: Duration) -> bool {
    connection.age() < max_age && connection.is_reusable()
}
