//! Prometheus' text format, version 0.0.4: the one that every scraper reads.

use std::fmt::{Display, Write as _};

use super::histogram::Histogram;

/// The media type of [`Text`].
pub const CONTENT_TYPE: &str = "text/plain; version=0.0.4; charset=utf-8";

/// A page of metrics, family by family.
#[derive(Default)]
pub struct Text {
    page: String,
    name: &'static str,
}

#[derive(Clone, Copy)]
pub enum Kind {
    Counter,
    Gauge,
    Histogram,
}

type Labels<'a> = &'a [(&'a str, &'a str)];

impl Text {
    /// Begins a family. Its samples follow, all of them.
    pub fn family(&mut self, name: &'static str, kind: Kind, help: &str) -> &mut Text {
        let kind = match kind {
            Kind::Counter => "counter",
            Kind::Gauge => "gauge",
            Kind::Histogram => "histogram",
        };
        self.name = name;
        writeln!(self.page, "# HELP {name} {help}\n# TYPE {name} {kind}").expect("a String takes it");
        self
    }

    pub fn sample(&mut self, labels: Labels<'_>, value: impl Display) {
        self.line("", labels, None, value);
    }

    pub fn histogram(&mut self, labels: Labels<'_>, histogram: &Histogram) {
        let mut count = 0;
        for (bound, n) in histogram.cumulative() {
            let bound = bound.map_or_else(|| "+Inf".to_owned(), |bound| bound.to_string());
            self.line("_bucket", labels, Some(("le", &bound)), n);
            count = n;
        }
        self.line("_sum", labels, None, histogram.sum());
        self.line("_count", labels, None, count);
    }

    pub fn finish(self) -> String {
        self.page
    }

    fn line(&mut self, suffix: &str, labels: Labels<'_>, last: Option<(&str, &str)>, value: impl Display) {
        let page = &mut self.page;
        write!(page, "{}{suffix}", self.name).expect("a String takes it");
        for (i, (name, value)) in labels.iter().copied().chain(last).enumerate() {
            let value = value.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n");
            let before = if i == 0 { '{' } else { ',' };
            write!(page, "{before}{name}=\"{value}\"").expect("a String takes it");
        }
        let end = if labels.is_empty() && last.is_none() { "" } else { "}" };
        writeln!(page, "{end} {value}").expect("a String takes it");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_family_is_told_with_help_type_and_samples() {
        let mut text = Text::default();
        text.family("a_total", Kind::Counter, "How many.").sample(&[("b", "x\"\\\n")], 7);
        text.family("c", Kind::Gauge, "How much.").sample(&[], 0.5);
        assert_eq!(
            text.finish(),
            "# HELP a_total How many.\n# TYPE a_total counter\na_total{b=\"x\\\"\\\\\\n\"} 7\n\
             # HELP c How much.\n# TYPE c gauge\nc 0.5\n"
        );
    }
}
