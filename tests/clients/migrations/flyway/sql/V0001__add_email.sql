alter table trade.customers add column email text;
