alter table trade.orders rename column note to remark;
