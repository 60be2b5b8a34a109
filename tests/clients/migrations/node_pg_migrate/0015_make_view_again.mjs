export const up = (pgm) => {
  pgm.sql(`create view trade.open_orders as
  select o.id, o.amount, c.region from trade.orders o join trade.customers c on c.id = o.customer`);
};
