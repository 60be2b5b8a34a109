from alembic import op

revision = "0014"
down_revision = "0013"


def upgrade():
    op.execute("alter table trade.orders alter column amount type bigint")
