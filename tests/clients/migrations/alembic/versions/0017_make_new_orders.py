from alembic import op

revision = "0017"
down_revision = "0016"


def upgrade():
    op.execute("""create table trade.orders_new (like trade.orders including all, currency text not null default 'EUR',
  foreign key (customer) references trade.customers)""")
