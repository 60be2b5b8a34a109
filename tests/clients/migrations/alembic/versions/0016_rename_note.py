from alembic import op

revision = "0016"
down_revision = "0015"


def upgrade():
    op.execute("alter table trade.orders rename column note to remark")
