"""Alembic's environment: the address of the Secret in DATABASE_URL, and a transaction for each migration."""

import os

from alembic import context
from sqlalchemy import create_engine

# psycopg is the driver; without its name SQLAlchemy takes psycopg2.
url = os.environ["DATABASE_URL"].replace("postgresql://", "postgresql+psycopg://", 1)
engine = create_engine(url, connect_args={"options": "-c lock_timeout=4s"})
with engine.connect() as connection:
    # A value of an enum is usable in the transaction after the one that adds it.
    context.configure(connection=connection, version_table_schema="trade", transaction_per_migration=True)
    with context.begin_transaction():
        context.run_migrations()
