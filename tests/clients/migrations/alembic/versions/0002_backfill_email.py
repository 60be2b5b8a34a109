from alembic import op

revision = "0002"
down_revision = "0001"


def upgrade():
    op.execute("update trade.customers set email = 'c' || id || '@example.com' where email is null")
