alter table trade.orders alter column amount type bigint;
