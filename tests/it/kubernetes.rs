//! A real Kubernetes API server, and the chart that is installed into it.

mod chart;
mod cluster;
