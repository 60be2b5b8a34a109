export const up = (pgm) => {
  pgm.sql(`lock table trade.orders in exclusive mode`);
  pgm.sql(`insert into trade.orders_new select * from trade.orders on conflict (id) do nothing`);
  pgm.sql(`drop view trade.open_orders`);
  pgm.sql(`alter table trade.orders rename to orders_old`);
  pgm.sql(`alter table trade.orders_new rename to orders`);
  pgm.sql(`create view trade.open_orders as
  select o.id, o.amount, c.region from trade.orders o join trade.customers c on c.id = o.customer`);
};
