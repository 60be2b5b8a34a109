export const up = (pgm) => {
  pgm.sql(`alter table trade.customers add column email text`);
};
