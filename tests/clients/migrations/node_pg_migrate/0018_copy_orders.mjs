export const up = (pgm) => {
  pgm.sql(`insert into trade.orders_new select * from trade.orders`);
};
