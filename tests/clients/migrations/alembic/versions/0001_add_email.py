from alembic import op

revision = "0001"
down_revision = None


def upgrade():
    op.execute("alter table trade.customers add column email text")
