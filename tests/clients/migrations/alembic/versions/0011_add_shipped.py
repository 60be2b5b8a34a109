from alembic import op

revision = "0011"
down_revision = "0010"


def upgrade():
    with op.get_context().autocommit_block():
        op.execute("alter type trade.status add value 'shipped'")
