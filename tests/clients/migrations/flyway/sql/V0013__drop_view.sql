drop view trade.open_orders;
