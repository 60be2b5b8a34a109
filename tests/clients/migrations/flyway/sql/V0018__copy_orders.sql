insert into trade.orders_new select * from trade.orders;
