alter table trade.products add constraint products_supplier foreign key (supplier)
  references trade.suppliers not valid;
