"""The Airflow side of Ganger: operators, and the factory that makes a DAG of each pipeline file.

Nothing here trains. Every parse of a DAG imports this package, so it imports no framework (held by a test).
"""
