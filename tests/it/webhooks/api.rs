//! `/api/ddl/events/webhooks`: what keys make, read, change and ask of their subscriptions.

mod change;
mod past;
mod refusals;
mod replay;
mod trial;
