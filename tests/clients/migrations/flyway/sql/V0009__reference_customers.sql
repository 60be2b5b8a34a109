alter table trade.orders add constraint orders_customer foreign key (customer) references trade.customers;
