from alembic import op

revision = "0010"
down_revision = "0009"


def upgrade():
    with op.get_context().autocommit_block():
        op.execute("create index concurrently orders_customer_index on trade.orders (customer)")
