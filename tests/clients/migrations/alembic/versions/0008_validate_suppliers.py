from alembic import op

revision = "0008"
down_revision = "0007"


def upgrade():
    op.execute("alter table trade.products validate constraint products_supplier")
