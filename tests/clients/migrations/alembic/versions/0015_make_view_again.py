from alembic import op

revision = "0015"
down_revision = "0014"


def upgrade():
    op.execute("""create view trade.open_orders as
  select o.id, o.amount, c.region from trade.orders o join trade.customers c on c.id = o.customer""")
