from alembic import op

revision = "0007"
down_revision = "0006"


def upgrade():
    op.execute("""alter table trade.products add constraint products_supplier foreign key (supplier)
  references trade.suppliers not valid""")
