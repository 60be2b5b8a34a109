//! The control: BEGIN, role, setting, one `json_agg` statement, COMMIT, each a trip of its own, through axum and sqlx.

use axum::Router;
use axum::extract::{RawQuery, State};
use axum::http::header::CONTENT_TYPE;
use axum::response::IntoResponse;
use axum::routing::get;
use sqlx::postgres::PgPoolOptions;
use sqlx::{Connection as _, PgPool};

use crate::stage::CONNECTIONS;

const ONE: &str = "select coalesce(json_agg(t), '[]')::text from (select * from api.items where id = $1) t";
const PAGE: &str = "select coalesce(json_agg(t), '[]')::text from \
    (select * from api.items where id > $1 order by id limit 100) t";

pub(crate) async fn serve(uri: &str, port: u16) -> Result<(), Box<dyn std::error::Error>> {
    let pool = PgPoolOptions::new().max_connections(CONNECTIONS as u32).connect(uri).await?;
    let app = Router::new().route("/items", get(items)).with_state(pool);
    let listener = tokio::net::TcpListener::bind(("127.0.0.1", port)).await?;
    axum::serve(listener, app).await?;
    Ok(())
}

async fn items(State(pool): State<PgPool>, RawQuery(query): RawQuery) -> impl IntoResponse {
    let body = rows(&pool, query.as_deref().unwrap_or_default()).await;
    ([(CONTENT_TYPE, "application/json")], body.unwrap_or_else(|error| panic!("the control failed: {error}")))
}

async fn rows(pool: &PgPool, query: &str) -> Result<String, sqlx::Error> {
    let (sql, id) = match query.strip_prefix("id=eq.") {
        Some(id) => (ONE, id),
        None => (PAGE, query.trim_start_matches("id=gt.").split('&').next().unwrap_or_default()),
    };
    let mut connection = pool.acquire().await?;
    let mut transaction = connection.begin().await?;
    sqlx::query("set local role reader").execute(&mut *transaction).await?;
    sqlx::query("select set_config('app.tenant', 't1', true)").execute(&mut *transaction).await?;
    let id: i32 = id.parse().unwrap_or_default();
    let text = sqlx::query_scalar(sql).bind(id).fetch_one(&mut *transaction).await?;
    transaction.commit().await?;
    Ok(text)
}
