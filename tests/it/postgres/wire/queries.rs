//! SQL of keys in sessions of their own role: who they are there, what ends them, and that nothing of one reaches another.

mod attempts;
mod attempts_inside;
mod endings;
mod fixture;
mod persistence;
mod versions;
