from alembic import op

revision = "0004"
down_revision = "0003"


def upgrade():
    op.execute("create table trade.suppliers (id bigint primary key, name text not null)")
