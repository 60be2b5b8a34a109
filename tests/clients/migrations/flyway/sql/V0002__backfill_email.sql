update trade.customers set email = 'c' || id || '@example.com' where email is null;
