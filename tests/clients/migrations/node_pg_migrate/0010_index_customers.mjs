export const up = (pgm) => {
  pgm.noTransaction();
  pgm.sql(`create index concurrently orders_customer_index on trade.orders (customer)`);
};
