export const up = (pgm) => {
  pgm.sql(`alter table trade.products validate constraint products_supplier`);
};
