from alembic import op

revision = "0003"
down_revision = "0002"


def upgrade():
    op.execute("alter table trade.customers alter column email set default 'unknown', alter column email set not null")
