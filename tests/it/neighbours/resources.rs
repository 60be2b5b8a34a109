//! What one tenant may take of what all share: memory, connections, the queue of NOTIFY.

mod bodies;
mod connections;
mod expressions;
mod notify_queue;
mod slow_readers;
mod tenant_data;
