from alembic import op

revision = "0006"
down_revision = "0005"


def upgrade():
    op.execute("alter table trade.products add column supplier bigint not null default 1")
