from alembic import op

revision = "0013"
down_revision = "0012"


def upgrade():
    op.execute("drop view trade.open_orders")
