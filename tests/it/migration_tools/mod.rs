//! Public migration tools change the tables of a tenant through the Secret of its migration login, while requests run.

mod away;
mod chains;
mod dump;
mod fixture;
mod load;
