-- Run by the Postgres image when its data folder is new. Airflow's database is made by POSTGRES_DB.
CREATE DATABASE mlflow;
