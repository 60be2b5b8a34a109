alter table trade.products validate constraint products_supplier;
