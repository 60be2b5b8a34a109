export const up = (pgm) => {
  pgm.sql(`update trade.orders set status = 'shipped' where id % 10 = 0`);
};
