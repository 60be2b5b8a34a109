//! operator/reconcile
