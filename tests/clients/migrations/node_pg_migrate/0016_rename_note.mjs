export const up = (pgm) => {
  pgm.sql(`alter table trade.orders rename column note to remark`);
};
