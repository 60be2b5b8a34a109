lock table trade.orders in exclusive mode;
insert into trade.orders_new select * from trade.orders on conflict (id) do nothing;
drop view trade.open_orders;
alter table trade.orders rename to orders_old;
alter table trade.orders_new rename to orders;
create view trade.open_orders as
  select o.id, o.amount, c.region from trade.orders o join trade.customers c on c.id = o.customer;
