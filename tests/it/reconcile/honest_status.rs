//! Status is never better than what it speaks of: the word of kstatus on each state that the API server shows is held against
//! what roles see in the database and what the data plane answers.

mod idle;
mod kubectl_wait;
mod stage;
mod turnstile;
mod walks;
