export const up = (pgm) => {
  pgm.noTransaction();
  pgm.sql(`alter type trade.status add value 'shipped'`);
};
