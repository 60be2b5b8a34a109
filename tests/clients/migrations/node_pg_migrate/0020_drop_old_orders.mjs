export const up = (pgm) => {
  pgm.sql(`drop table trade.orders_old`);
};
