create index concurrently orders_customer_index on trade.orders (customer);
