//! `/metrics`: all meters and what is true at this moment, as one page.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use axum::body::Body;
use axum::http::HeaderValue;
use axum::http::header::CONTENT_TYPE;
use axum::response::Response;

use rowgate_pg::wire::ServerLoad;
use rowgate_program::metrics::{CONTENT_TYPE as MEDIA_TYPE, Count, Kind, Text, process};

use crate::app::App;
use crate::export_jobs::ExportCounts;
use crate::server::metrics::{NONE, RequestMetrics};
use crate::tenants::tenant::Tenant;

/// The page as an answer.
pub fn answer(app: &App) -> Response {
    let mut response = Response::new(Body::from(page(app)));
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(MEDIA_TYPE));
    response
}

fn page(app: &App) -> String {
    let tenants = app.tenants.sorted();
    let mut text = Text::default();
    requests(&mut text, app, &tenants);
    databases(&mut text, &tenants);
    servers(&mut text, app);
    events(&mut text, &tenants);
    webhooks(&mut text, &tenants);
    exports(&mut text, &tenants);
    catalogs(&mut text, &tenants);
    process::tell(&mut text);
    text.finish()
}

fn requests(text: &mut Text, app: &App, tenants: &[Arc<Tenant>]) {
    let strangers = [(NONE, &app.metrics)];
    let all_metrics: Vec<(&str, &RequestMetrics)> =
        strangers.into_iter().chain(tenants.iter().map(|it| (it.slug.as_str(), &it.metrics))).collect();
    let help = "Requests, by the pattern of their route; - where none matched or no tenant was named.";
    text.family("rowgate_http_requests_total", Kind::Counter, help);
    for (tenant, metrics) in &all_metrics {
        metrics.each_request(|route, method, status, n| {
            let labels = [("tenant", *tenant), ("route", route), ("method", method), ("status", status)];
            text.sample(&labels, n);
        });
    }
    let help = "Seconds from the headers of a request to the end of its response.";
    text.family("rowgate_http_request_duration_seconds", Kind::Histogram, help);
    for (tenant, metrics) in &all_metrics {
        metrics.each_duration(|route, it| text.histogram(&[("tenant", tenant), ("route", route)], it));
    }
    let help = "Responses that were cut short, and requests whose clients disconnected first.";
    text.family("rowgate_http_cut_total", Kind::Counter, help);
    for (tenant, metrics) in &all_metrics {
        text.sample(&[("tenant", tenant)], metrics.cut.get());
    }
    let help = "Malformed requests, refused with 400, 414 or 431; they count in no other metric.";
    text.family("rowgate_http_rejected_total", Kind::Counter, help);
    for (reason, n) in [("malformed", &app.unparsed.malformed), ("too_large", &app.unparsed.too_large)] {
        text.sample(&[("reason", reason)], n.get());
    }
    let help = "Requests that were refused, by the code of the error; RateLimited is the limit of a key.";
    text.family("rowgate_refusals_total", Kind::Counter, help);
    for (tenant, metrics) in &all_metrics {
        metrics.each_refusal(|code, n| text.sample(&[("tenant", tenant), ("code", &format!("{code:?}"))], n));
    }
    let (held, most) = app.body_memory.load();
    let help = "Memory held by the bodies of requests in progress and the statements built from them.";
    text.family("rowgate_http_request_body_bytes", Kind::Gauge, help).sample(&[], held);
    let help = "The maximum of that memory.";
    text.family("rowgate_http_request_body_bytes_max", Kind::Gauge, help).sample(&[], most);
}

fn databases(text: &mut Text, tenants: &[Arc<Tenant>]) {
    let help = "Seconds from a statement to its first rows, including the wait for a connection.";
    text.family("rowgate_database_exchange_duration_seconds", Kind::Histogram, help);
    for tenant in tenants {
        text.histogram(&[("tenant", tenant.slug.as_str())], &tenant.metrics.exchanges);
    }
    let help = "Exchanges with the database whose client disconnected while they ran.";
    text.family("rowgate_database_exchanges_abandoned_total", Kind::Counter, help);
    for tenant in tenants {
        text.sample(&[("tenant", tenant.slug.as_str())], tenant.request_pool.counters().n_abandoned());
    }
    let help = "Exchanges that were ended because their key was revoked, or because another key waited for the connection.";
    text.family("rowgate_database_exchanges_ended_total", Kind::Counter, help);
    for tenant in tenants {
        let (dead, outshared) = tenant.request_pool.counters().n_stopped();
        for (reason, n) in [("dead_key", dead), ("others_wait", outshared)] {
            text.sample(&[("tenant", tenant.slug.as_str()), ("reason", reason)], n);
        }
    }
    let help = "Connections opened for requests, and attempts that failed.";
    text.family("rowgate_database_connects_total", Kind::Counter, help);
    for tenant in tenants {
        let (opened, failed) = tenant.request_pool.counters().n_connects();
        for (result, n) in [("opened", opened), ("failed", failed)] {
            text.sample(&[("tenant", tenant.slug.as_str()), ("result", result)], n);
        }
    }
    gauge(text, tenants, "rowgate_database_up", "1 while the tenant's database answers, else 0.", |tenant| {
        Some(u64::from(tenant.answers()))
    });
    text.family("rowgate_pool_connections", Kind::Gauge, "Connections for requests, by state.");
    for tenant in tenants {
        let load = tenant.request_pool.load();
        for (state, n) in [("in_use", load.in_use), ("idle", load.idle)] {
            text.sample(&[("tenant", tenant.slug.as_str()), ("state", state)], n);
        }
    }
    gauge(
        text,
        tenants,
        "rowgate_pool_connections_max",
        "The maximum of connections for requests.",
        |tenant| Some(tenant.request_pool.load().size as u64),
    );
    gauge(text, tenants, "rowgate_pool_waiting_requests", "Requests that wait for a connection.", |tenant| {
        Some(tenant.request_pool.load().waiting as u64)
    });
    text.family("rowgate_call_sessions", Kind::Gauge, "Sessions of functions and procedures, by state.");
    for tenant in tenants {
        let load = tenant.calls.load();
        for (state, n) in [("in_use", load.in_use), ("idle", load.idle)] {
            text.sample(&[("tenant", tenant.slug.as_str()), ("state", state)], n);
        }
    }
    gauge(text, tenants, "rowgate_call_sessions_max", "The maximum of concurrent calls.", |tenant| {
        Some(tenant.calls.load().size as u64)
    });
    gauge(text, tenants, "rowgate_calls_waiting", "Calls that wait for a session.", |tenant| {
        Some(tenant.calls.load().waiting as u64)
    });
    text.family(
        "rowgate_calls_abandoned_total",
        Kind::Counter,
        "Calls whose client disconnected while they ran.",
    );
    for tenant in tenants {
        text.sample(&[("tenant", tenant.slug.as_str())], tenant.calls.counters().n_abandoned());
    }
    let help = "Lookups of keys: of keys seen before, and of unknown keys.";
    text.family("rowgate_key_lookups_total", Kind::Counter, help);
    for tenant in tenants {
        let of = [
            ("known", &tenant.metrics.look_ups_of_known_keys),
            ("stranger", &tenant.metrics.look_ups_of_unknown_keys),
        ];
        for (of, n) in of {
            text.sample(&[("tenant", tenant.slug.as_str()), ("of", of)], n.get());
        }
    }
}

fn events(text: &mut Text, tenants: &[Arc<Tenant>]) {
    let help = "Streams of events, GraphQL subscriptions among them.";
    gauge(text, tenants, "rowgate_event_streams", help, |tenant| Some(tenant.event_tail.n_streams()));
    let help = "Requests that wait for events, streams among them.";
    gauge(text, tenants, "rowgate_event_readers", help, |tenant| Some(tenant.event_tail.n_readers()));
    let help = "Ticks that the stream furthest behind has not read.";
    gauge(text, tenants, "rowgate_event_stream_lag_ticks", help, |tenant| Some(tenant.event_tail.lag().0));
    let help = "Seconds for which the stream furthest behind has not read all ticks.";
    gauge(text, tenants, "rowgate_event_stream_lag_seconds", help, |tenant| Some(tenant.event_tail.lag().1));
    let log = |tenant: &Tenant| tenant.event_tail.log_size();
    let help =
        "Bytes on disk of the log of row changes, as looked at every minute while requests wait for events.";
    gauge(text, tenants, "rowgate_event_log_bytes", help, |tenant| Some(log(tenant)?.bytes));
    let help = "Beginning of the first day that the log of row changes holds, in seconds since 1970.";
    gauge(text, tenants, "rowgate_event_log_oldest_timestamp_seconds", help, |tenant| {
        Some(log(tenant)?.oldest)
    });
    let help = "Ticks, in which row changes become visible, that came while requests waited for events.";
    text.family("rowgate_event_ticks_total", Kind::Counter, help);
    for tenant in tenants {
        text.sample(&[("tenant", tenant.slug.as_str())], tenant.event_tail.ticks.get());
    }
    let help = "Events given to keys; one event counts for each reader.";
    text.family("rowgate_events_given_total", Kind::Counter, help);
    for tenant in tenants {
        text.sample(&[("tenant", tenant.slug.as_str())], tenant.event_tail.counts.given.get());
    }
    let help = "Events that a key was not given, by reason.";
    text.family("rowgate_events_withheld_total", Kind::Counter, help);
    for tenant in tenants {
        let counts = &tenant.event_tail.counts;
        for (reason, n) in [("hidden", &counts.hidden), ("undecided", &counts.undecided)] {
            text.sample(&[("tenant", tenant.slug.as_str()), ("reason", reason)], n.get());
        }
    }
}

fn webhooks(text: &mut Text, tenants: &[Arc<Tenant>]) {
    let help = "Requests to receivers of webhooks, by outcome.";
    text.family("rowgate_webhook_deliveries_total", Kind::Counter, help);
    for tenant in tenants {
        let counts = &tenant.deliveries.counts;
        for (outcome, n) in [("delivered", &counts.delivered), ("failed", &counts.failed)] {
            text.sample(&[("tenant", tenant.slug.as_str()), ("outcome", outcome)], n.get());
        }
    }
    let help = "Events that receivers of webhooks have taken.";
    text.family("rowgate_webhook_events_delivered_total", Kind::Counter, help);
    for tenant in tenants {
        text.sample(&[("tenant", tenant.slug.as_str())], tenant.deliveries.counts.events.get());
    }
    let help = "Batches of webhooks that were given up.";
    text.family("rowgate_webhook_dead_letters_total", Kind::Counter, help);
    for tenant in tenants {
        text.sample(&[("tenant", tenant.slug.as_str())], tenant.deliveries.counts.dead_letters.get());
    }
    let help =
        "Webhook subscriptions, by state, at the replica that looks after those of the tenant; 0 elsewhere.";
    text.family("rowgate_webhook_subscriptions", Kind::Gauge, help);
    for tenant in tenants {
        let counts = &tenant.deliveries.counts;
        for (state, n) in [("enabled", &counts.enabled), ("disabled", &counts.disabled)] {
            text.sample(&[("tenant", tenant.slug.as_str()), ("state", state)], n.load(Ordering::Relaxed));
        }
    }
    let help =
        "Events that webhooks have not delivered, at most 10000 of each subscription, at that replica.";
    gauge(text, tenants, "rowgate_webhook_undelivered_events", help, |tenant| {
        Some(tenant.deliveries.counts.lag.load(Ordering::Relaxed))
    });
}

fn exports(text: &mut Text, tenants: &[Arc<Tenant>]) {
    let help = "Exports that ended at this replica, by outcome.";
    text.family("rowgate_exports_total", Kind::Counter, help);
    for tenant in tenants {
        let counts = &tenant.export_counts;
        let outcomes =
            [("succeeded", &counts.succeeded), ("failed", &counts.failed), ("cancelled", &counts.cancelled)];
        for (outcome, n) in outcomes {
            text.sample(&[("tenant", tenant.slug.as_str()), ("outcome", outcome)], n.get());
        }
    }
    for (name, help, count) in [
        (
            "rowgate_export_rows_total",
            "Rows in the files of exports that succeeded.",
            (|counts| &counts.rows) as fn(&ExportCounts) -> &Count,
        ),
        ("rowgate_export_bytes_total", "Bytes of the files of exports that succeeded.", |counts| {
            &counts.bytes
        }),
    ] {
        text.family(name, Kind::Counter, help);
        for tenant in tenants {
            text.sample(&[("tenant", tenant.slug.as_str())], count(&tenant.export_counts).get());
        }
    }
    gauge(text, tenants, "rowgate_exports_running", "Exports that this replica runs.", |tenant| {
        Some(tenant.export_counts.running.load(Ordering::Relaxed))
    });
}

fn servers(text: &mut Text, app: &App) {
    let servers = app.tenants.servers();
    for (name, kind, help, value) in [
        (
            "rowgate_server_connections",
            Kind::Gauge,
            "Connections to a server that are open or being opened, of all tenants.",
            (|load| load.open as u64) as fn(&ServerLoad) -> u64,
        ),
        ("rowgate_server_connections_max", Kind::Gauge, "The maximum of connections to a server.", |load| {
            load.size as u64
        }),
        (
            "rowgate_server_waiting_pools",
            Kind::Gauge,
            "Pools of tenants that wait for one more connection to a server.",
            |load| load.waiting as u64,
        ),
        (
            "rowgate_server_connections_reclaimed_total",
            Kind::Counter,
            "Idle connections that were closed because another pool waited for one.",
            |load| load.n_reclaimed,
        ),
    ] {
        text.family(name, kind, help);
        for (server, load) in &servers {
            text.sample(&[("server", server)], value(load));
        }
    }
}

fn catalogs(text: &mut Text, tenants: &[Arc<Tenant>]) {
    text.family("rowgate_tenants", Kind::Gauge, "Tenants that this replica serves.")
        .sample(&[], tenants.len());
    let help = "The generation of the catalog that is served.";
    gauge(text, tenants, "rowgate_catalog_generation", help, Tenant::generation);
    for (name, help, count) in [
        (
            "rowgate_catalog_loads_total",
            "Catalogs that were loaded.",
            (|metrics| &metrics.catalog_loads) as fn(&RequestMetrics) -> &Count,
        ),
        ("rowgate_catalog_load_failures_total", "Catalogs that could not be loaded.", |metrics| {
            &metrics.catalog_load_failures
        }),
    ] {
        text.family(name, Kind::Counter, help);
        for tenant in tenants {
            text.sample(&[("tenant", tenant.slug.as_str())], count(&tenant.metrics).get());
        }
    }
    let version = [("version", env!("CARGO_PKG_VERSION"))];
    text.family("rowgate_build_info", Kind::Gauge, "The version that runs.").sample(&version, 1);
}

/// One number for each tenant that has it.
fn gauge<N: std::fmt::Display>(
    text: &mut Text,
    tenants: &[Arc<Tenant>],
    name: &'static str,
    help: &str,
    value: impl Fn(&Tenant) -> Option<N>,
) {
    text.family(name, Kind::Gauge, help);
    for tenant in tenants {
        if let Some(value) = value(tenant) {
            text.sample(&[("tenant", tenant.slug.as_str())], value);
        }
    }
}
