alter table trade.customers alter column email set default 'unknown', alter column email set not null;
