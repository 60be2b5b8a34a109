create table trade.orders_new (like trade.orders including all, currency text not null default 'EUR',
  foreign key (customer) references trade.customers);
