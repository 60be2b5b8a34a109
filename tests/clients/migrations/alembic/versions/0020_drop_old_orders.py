from alembic import op

revision = "0020"
down_revision = "0019"


def upgrade():
    op.execute("drop table trade.orders_old")
