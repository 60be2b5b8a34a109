export const up = (pgm) => {
  pgm.sql(`alter table trade.orders alter column amount type bigint`);
};
