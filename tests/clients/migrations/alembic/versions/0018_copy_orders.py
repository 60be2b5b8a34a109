from alembic import op

revision = "0018"
down_revision = "0017"


def upgrade():
    op.execute("insert into trade.orders_new select * from trade.orders")
