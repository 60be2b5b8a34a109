from alembic import op

revision = "0019"
down_revision = "0018"


def upgrade():
    op.execute("lock table trade.orders in exclusive mode")
    op.execute("insert into trade.orders_new select * from trade.orders on conflict (id) do nothing")
    op.execute("drop view trade.open_orders")
    op.execute("alter table trade.orders rename to orders_old")
    op.execute("alter table trade.orders_new rename to orders")
    op.execute("""create view trade.open_orders as
  select o.id, o.amount, c.region from trade.orders o join trade.customers c on c.id = o.customer""")
