alter table trade.products add column supplier bigint not null default 1;
