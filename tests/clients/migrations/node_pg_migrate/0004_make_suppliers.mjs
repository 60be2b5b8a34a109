export const up = (pgm) => {
  pgm.sql(`create table trade.suppliers (id bigint primary key, name text not null)`);
};
