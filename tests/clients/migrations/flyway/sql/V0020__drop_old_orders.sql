drop table trade.orders_old;
