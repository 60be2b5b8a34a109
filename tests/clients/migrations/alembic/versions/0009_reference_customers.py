from alembic import op

revision = "0009"
down_revision = "0008"


def upgrade():
    op.execute("alter table trade.orders add constraint orders_customer foreign key (customer) references trade.customers")
