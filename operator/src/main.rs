//! `rowgate-operator`: reconciles what a cluster declares.

fn main() {}
