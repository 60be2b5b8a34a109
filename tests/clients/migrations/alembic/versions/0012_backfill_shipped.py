from alembic import op

revision = "0012"
down_revision = "0011"


def upgrade():
    op.execute("update trade.orders set status = 'shipped' where id % 10 = 0")
