update trade.orders set status = 'shipped' where id % 10 = 0;
