export const up = (pgm) => {
  pgm.sql(`drop view trade.open_orders`);
};
