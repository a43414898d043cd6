"""Texts that try to get out: files, the network, settings, system tables, several statements, odd signs (T69 to T73).

Each is put together from what should not be reached and from the place in a query
where it might be; a table is not named in ever more ways in the same place. The
`Outside` says where the files and the address lie that a test watches.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

CANARY: Final = "CANARY-5T1LL-H3R3"


@dataclass(frozen=True, slots=True)
class Outside:
    """What must not be touched: a file that holds the canary, its folder, and an address where somebody listens."""

    file: str
    folder: str
    url: str

    def filled(self, text: str) -> str:
        """A text with these places in it."""
        return text.replace("{f}", self.file).replace("{d}", self.folder).replace("{u}", self.url)


# What stands where a table may stand.
TABLES: Final = (
    # files by function
    "read_csv('{f}')", "read_csv_auto('{f}', header=true)", "read_text('{f}')", "read_blob('{f}')", "glob('{d}/*')",
    "read_json('{f}')", "read_json_objects('{f}')", "read_ndjson('{f}')", "read_ndjson_auto('{f}')",
    "read_parquet('{f}')", "parquet_scan('{f}')", "parquet_metadata('{f}')", "parquet_schema('{f}')",
    "parquet_file_metadata('{f}')", "parquet_kv_metadata('{f}')", "sniff_csv('{f}')", "read_duckdb('{f}')",
    "read_xlsx('{f}')", "read_avro('{f}')", "st_read('{f}')", "sqlite_scan('{f}', 't')", "iceberg_scan('{d}')",
    "delta_scan('{d}')", "postgres_scan('host=127.0.0.1', 'public', 't')", "mysql_scan('host=127.0.0.1', 'a', 't')",
    "postgres_query('p', 'SELECT 1')", "arrow_scan(1, 2, 3)", "pandas_scan(1)", "python_map_function(1)",
    "read_csv(['{f}', '{f}'])", "read_csv('{f}', columns={'a': 'VARCHAR'})", "read_text('file://{f}')",
    "read_text('/proc/self/environ')", "read_blob('/proc/self/mem')", "read_text('/etc/passwd')",
    "read_text('~/.ssh/*')",
    "read_csv('/dev/stdin')", "read_text('../../../../../../etc/shadow')", "glob('/**')",
    # files and addresses by name
    "'{f}'", '"{f}"', '"{f}" AS survey', '"file://{f}"', '"{d}/*.csv"', "'{u}/x.csv'", '"{u}/x.parquet"',
    '"s3://bucket/x.parquet"', '"gs://bucket/x"', '"az://bucket/x"', '"hf://datasets/x/y.csv"',
    '"survey.parquet"', '"survey.ledger"', "`{f}`", "[{f}]", "$${f}$$", 'U&"\\002Fetc/passwd"',
    # the network
    "read_csv('{u}/x.csv')", "read_parquet('{u}/x.parquet')", "read_text('https://example.org/')",
    "read_blob('s3://bucket/key')", "http_get('{u}')", "read_csv('http://169.254.169.254/latest/meta-data/')",
    # SQL from text, and what the engine says of itself
    "query('SELECT 42')", "query_table('kept')", "query_table(['kept', 'survey'])", "query('COPY kept TO ''{d}/o''')",
    "duckdb_settings()", "duckdb_tables()", "duckdb_columns()", "duckdb_functions()", "duckdb_secrets()",
    "duckdb_databases()", "duckdb_extensions()", "duckdb_logs()", "duckdb_temporary_files()", "duckdb_variables()",
    "duckdb_views()", "duckdb_memory()", "duckdb_keywords()", "duckdb_optimizers()", "duckdb_external_file_cache()",
    "pragma_table_info('kept')", "pragma_storage_info('kept')", "pragma_database_size()", "pragma_show('kept')",
    "pragma_version()", "pragma_last_profiling_output()", "which_secret('{f}', 's3')",
    "json_execute_serialized_sql('')",
    "sql_auto_complete('SEL')", "test_all_types()", "repeat(1, 9)", "generate_series(1, 10)", "unnest([1, 2])",
    "range(10)", "seq_scan('kept')", "index_scan()", "summary((SELECT 1))", "checkpoint()", "force_checkpoint()",
    # system tables, the prepared copy by its own name
    "information_schema.tables", "information_schema.columns", "INFORMATION_SCHEMA.SCHEMATA", "pg_catalog.pg_class",
    "pg_class", "pg_tables", "pg_catalog.pg_settings", "pg_stat_activity", "pg_shadow", "sqlite_master",
    "sqlite_schema",
    "duckdb_tables", "system.main.duckdb_settings", "kept", "data.kept", "main.kept", "memory.main.kept", "temp.kept",
    "source", "categories0", '"kept"', "pg_read_file('{f}')", "lo_import('{f}')", "dblink('host=x', 'SELECT 1')",
    # Python's own
    "frame", "db", "globals()", "__builtins__", "os.environ", "sys.modules", "CANARY", "secret_frame",
    # forms that are tables in other dialects
    "(VALUES (1), (2))", "(TABLE kept)", "(FROM kept)", "(COPY kept TO '{d}/o')", "(DELETE FROM kept RETURNING *)",
    "(INSERT INTO kept VALUES (1) RETURNING 1)", "XMLTABLE('/a' PASSING '<a/>' COLUMNS b int)",
    "JSON_TABLE('{}', '$')",
    "OPENROWSET('SQLNCLI', 'x', 'SELECT 1')", "OPENQUERY(s, 'x')", "EXTERNAL('{f}')", "STDIN", "@stage/x", "#tmp",
)  # fmt: skip

# Where a table may stand; also what only looks like a query.
AROUND: Final = (
    "SELECT COUNT(*) FROM {t}",
    "SELECT * FROM {t}",
    "SELECT COUNT(*) FROM survey JOIN {t} ON TRUE",
    "SELECT COUNT(*) FROM survey WHERE age IN (SELECT a FROM {t})",
    "WITH q AS (SELECT * FROM {t}) SELECT COUNT(*) FROM q",
    "SELECT COUNT(*) FROM survey UNION ALL SELECT COUNT(*) FROM {t}",
    "SELECT (SELECT COUNT(*) FROM {t}) FROM survey",
    "SELECT COUNT(*) FROM survey, LATERAL {t}",
    "SELECT COUNT(*) FROM survey WHERE EXISTS (SELECT 1 FROM {t})",
    "SELECT COUNT(*) FROM (SELECT * FROM {t}) AS q",
    "EXPLAIN SELECT COUNT(*) FROM {t}",
    "EXPLAIN ANALYZE SELECT * FROM {t}",
    "FROM {t}",
    "TABLE {t}",
    "SELECT COUNT(*) FROM survey LEFT JOIN {t} USING (age)",
    "SELECT COUNT(*) FROM survey HAVING COUNT(*) > (SELECT MAX(a) FROM {t})",
    "WITH RECURSIVE q AS (SELECT 1 UNION ALL SELECT * FROM {t}) SELECT COUNT(*) FROM q",
)

# What stands where a value may stand.
VALUES: Final = (
    "getenv('HOME')", "current_setting('home_directory')", "current_setting('secret_directory')", "getvariable('v')",
    "pg_read_file('{f}')", "pg_read_binary_file('{f}')", "pg_ls_dir('{d}')", "pg_stat_file('{f}')", "lo_get(1)",
    "current_query()", "current_database()", "current_schema()", "current_schemas(true)", "current_user",
    "session_user", "version()", "inet_server_addr()", "txid_current()", "nextval('s')", "currval('s')",
    "set_config('lock_configuration', 'false', false)", "load_extension('{f}')", "pg_sleep(10)", "sleep(10)",
    "random()", "setseed(0.5)", "gen_random_uuid()", "uuid()", "now()", "current_timestamp",
    "query_to_xml('SELECT 1')",
    "error('x')", "raise_exception('x')", "in_search_path('main', 'main')", "write_log('x')", "write_blob('{f}', 'x')",
    "write_text('{f}', 'x')", "parse_path('{f}')", "file_exists('{f}')", "read_text('{f}')", "content('{f}')",
    "json_serialize_sql('SELECT 1')", "json_execute_serialized_sql('x')", "json_deserialize_sql('x')", "eval('1')",
    "exec('1')", "system('id')", "xp_cmdshell('id')", "sys_exec('id')", "load_file('{f}')", "utl_http.request('{u}')",
    "http_get('{u}')", "url_encode('{u}')", "extract_user('{u}')", "dbms_pipe.receive_message('a', 10)",
    "list_transform([1], x -> getenv('HOME'))", "[getenv('HOME') FOR x IN [1]]", "struct_pack(a := getenv('HOME'))",
    "array_agg(age)", "string_agg(name, ',')", "first(name)", "any_value(name)", "arg_max(name, age)", "mode(name)",
    "histogram(name)", "list(name)", "approx_top_k(name, 9)", "row_number() OVER ()", "lag(name) OVER (ORDER BY age)",
    "rowid", "oid", "ctid", "tableoid", "xmin", "COLUMNS('.*')", "survey", "survey.*", "(survey).name", "hash(survey)",
    "to_json(survey)", "md5(name)", "CAST('{f}' AS regclass)", "'kept'::regclass::oid", "nope.survey.age", "$1", "?",
    ":name", "@@version", "@x := 1", "(SELECT name FROM survey LIMIT 1)", "(SELECT 1; SELECT 2)", 'age COLLATE "x"',
    "INTERVAL (getenv('A')) DAY", "a.b.c.d.e", "age OPERATOR(pg_catalog.+) 1", "finalize(age)", "combine(age, age)",
)  # fmt: skip

WITHIN: Final = (
    "SELECT {e} FROM survey",
    "SELECT COUNT(*) FROM survey WHERE age = {e}",
    "SELECT SUM({e}) FROM survey",
    "SELECT COUNT(*) FROM survey GROUP BY {e}",
    "SELECT COUNT(*) FROM survey ORDER BY {e}",
    "SELECT COUNT(*) FROM survey HAVING {e} IS NOT NULL",
    "SELECT COUNT(*) FILTER (WHERE {e} IS NULL) FROM survey",
    "SELECT {e}",
    "SELECT COUNT(*) FROM survey LIMIT {e}",
    "SELECT AVG(CASE WHEN age > 1 THEN {e} END) FROM survey",
    "SELECT COUNT(*) FROM survey WHERE name LIKE {e}",
    "SELECT COUNT(*) FROM survey WHERE age IN (1, {e})",
)

STATEMENTS: Final = (
    "COPY kept TO '{d}/out.csv'", "COPY (SELECT * FROM survey) TO '{d}/out.parquet' (FORMAT parquet)",
    "COPY survey FROM '{f}'", "COPY survey TO PROGRAM 'id'", "COPY survey FROM STDIN",
    "COPY (SELECT 1) TO '/dev/tcp/x/1'",
    "EXPORT DATABASE '{d}/out'", "IMPORT DATABASE '{d}'", "ATTACH '{d}/new.duckdb' AS g", "ATTACH '{f}' (TYPE sqlite)",
    "ATTACH 'host=127.0.0.1' AS p (TYPE postgres)", "ATTACH IF NOT EXISTS '{u}/x.duckdb'", "DETACH data", "USE data",
    "INSTALL httpfs", "FORCE INSTALL json FROM community", "LOAD httpfs", "LOAD '{d}/x.duckdb_extension'",
    "UPDATE EXTENSIONS", "SET enable_external_access = true", "SET GLOBAL lock_configuration = false",
    "SET allowed_directories = ['{d}']", "SET allowed_paths = ['{f}']", "SET home_directory = '{d}'",
    "SET temp_directory = '{d}'", "SET extension_directory = '{d}'", "SET secret_directory = '{d}'",
    "SET threads TO 1",
    "SET s3_endpoint = '{u}'", "SET http_proxy = '{u}'", "SET custom_extension_repository = '{u}'", "RESET ALL",
    "SET VARIABLE v = (SELECT 1)", "SET SESSION search_path = 'pg_catalog'", "SET log_query_path = '{d}/log'",
    "SET profiling_output = '{d}/p'", "PRAGMA enable_profiling", "PRAGMA database_list", "PRAGMA table_info('kept')",
    "PRAGMA show_tables", "PRAGMA import_database('{d}')", "PRAGMA enable_logging", "PRAGMA disable_verification",
    "CALL duckdb_settings()", "CALL pragma_version()", "CALL enable_logging(storage='file')", "CALL start_ui()",
    "CREATE TABLE t AS SELECT * FROM survey", "CREATE OR REPLACE TABLE survey AS SELECT 1",
    "CREATE VIEW v AS SELECT 1",
    "CREATE MACRO count(x) AS 1", "CREATE OR REPLACE MACRO m() AS TABLE SELECT 1", "CREATE SECRET s (TYPE s3)",
    "CREATE PERSISTENT SECRET s (TYPE http, EXTRA_HTTP_HEADERS MAP {'a': 'b'})", "CREATE SCHEMA s",
    "CREATE TYPE t AS ENUM ('a')",
    "CREATE SEQUENCE s", "CREATE INDEX i ON kept (c0)",
    "CREATE FUNCTION f() RETURNS int AS $$ SELECT 1 $$ LANGUAGE sql",
    "CREATE EXTENSION file_fdw", "CREATE TEMP TABLE x (a int)",
    "CREATE TRIGGER t AFTER INSERT ON kept EXECUTE FUNCTION f()",
    "INSERT INTO kept VALUES (1)", "UPDATE kept SET c0 = 1", "DELETE FROM kept", "TRUNCATE kept", "DROP TABLE kept",
    "DROP SCHEMA main CASCADE", "ALTER TABLE kept RENAME TO survey",
    "MERGE INTO kept USING survey ON TRUE WHEN MATCHED THEN DELETE",
    "VACUUM", "ANALYZE", "CHECKPOINT", "FORCE CHECKPOINT", "BEGIN", "COMMIT", "ROLLBACK", "SAVEPOINT a",
    "PREPARE p AS SELECT 1", "EXECUTE p", "DEALLOCATE p", "EXECUTE IMMEDIATE 'SELECT 1'",
    "DECLARE c CURSOR FOR SELECT 1",
    "FETCH ALL FROM c", "DO $$ BEGIN PERFORM 1; END $$", "LISTEN x", "NOTIFY x", "GRANT ALL ON survey TO PUBLIC",
    "LOCK TABLE survey", "COMMENT ON TABLE survey IS 'x'", "SECURITY LABEL ON TABLE survey IS 'x'",
    "REINDEX TABLE kept",
    "SHOW TABLES", "SHOW ALL TABLES", "SHOW DATABASES", "SHOW search_path", "DESCRIBE survey", "DESCRIBE",
    "SUMMARIZE survey",
    "PIVOT survey ON city USING COUNT(*)", "UNPIVOT survey ON age INTO NAME a VALUE b", "VALUES (1)", "EXPLAIN",
    "EXPLAIN EXPLAIN SELECT 1",
    "KILL 1", "SHUTDOWN", "HANDLER survey OPEN", "LOAD DATA INFILE '{f}' INTO TABLE survey",
    "BULK INSERT survey FROM '{f}'",
    "SELECT name INTO OUTFILE '{d}/o' FROM survey", "SELECT name INTO DUMPFILE '{d}/o' FROM survey",
    "SELECT name INTO stolen FROM survey", ".open {f}", ".read {f}", ".shell id", "\\copy survey to '{d}/o'", "\\! id",
    "!id", "%sql SELECT 1", "import os; os.system('id')", "__import__('os').system('id')", "{{7*7}}", "${7*7}",
)  # fmt: skip

# A query that is answered, and how something may be hung on to it.
JOINED: Final = (
    "SELECT COUNT(*) FROM survey; {s}",
    "{s}; SELECT COUNT(*) FROM survey",
    "SELECT COUNT(*) FROM survey;\n{s};",
    "SELECT COUNT(*) FROM survey -- \n; {s}",
    "SELECT COUNT(*) FROM survey -- \r; {s}",
    "SELECT COUNT(*) FROM survey --\u2028; {s}",
    "SELECT COUNT(*) FROM survey /* */; {s}",
    "SELECT COUNT(*) FROM survey /* /* */; {s} /* */ */",
    "SELECT COUNT(*) FROM survey /*! ; {s} */",
    "SELECT COUNT(*) FROM survey # ; {s}",
    "SELECT COUNT(*) FROM survey WHERE name = 'a\\'; {s} --'",
    "SELECT COUNT(*) FROM survey WHERE name = E'a\\'; {s} --'",
    "SELECT COUNT(*) FROM survey WHERE name = U&'\\0027; {s} --'",
    "SELECT COUNT(*) FROM survey WHERE name = $$'; {s} --$$",
    "SELECT COUNT(*) FROM survey WHERE name = $a$ $$; {s} $a$",
    "SELECT COUNT(*) FROM survey WHERE name = X'27'; {s}",
    "SELECT COUNT(*) FROM survey WHERE name = 'a''; {s} --'",
    'SELECT COUNT(*) FROM survey WHERE name = "\'; {s} --"',
    "SELECT COUNT(*) FROM survey WHERE name = `'; {s} --`",
    'SELECT COUNT(*) AS "a""; {s} --" FROM survey',
    'SELECT COUNT(*) AS "{s}" FROM survey',
    'SELECT COUNT(*) FROM survey AS "x; {s}"',
    'SELECT COUNT(*) FROM survey AS s("; {s}", b)',
    'WITH "; {s}" AS (SELECT age FROM survey) SELECT COUNT(*) FROM "; {s}"',
    "SELECT COUNT(*) FROM survey\x00; {s}",
    "SELECT COUNT(*) FROM survey\u037e {s}",
    "SELECT COUNT(*) FROM survey\uff1b {s}",
    "SELECT COUNT(*) FROM survey \u202e; {s}\u202c",
    "SELECT COUNT(*) FROM survey \ufeff; {s}",
    "SELECT/**/COUNT(*)/**/FROM/**/survey;/**/{s}",
    "SELECT COUNT(*) FROM survey WHERE 1 = 1 OR ({s})",
    "SELECT COUNT(*) FROM survey UNION ({s})",
    "(SELECT COUNT(*) FROM survey); ({s})",
    "EXPLAIN SELECT COUNT(*) FROM survey; {s}",
)
HUNG: Final = ("COPY kept TO '{d}/o'", "ATTACH '{f}' AS g", "SET threads = 1", "SELECT * FROM read_text('{f}')")

# What is no query at all, for the places of names, labels and literals.
TEXTS: Final = (
    "'; COPY kept TO '{d}/o'; --", "\"; COPY kept TO '{d}/o'; --", "`; DROP TABLE kept; --", "]; DROP TABLE kept; --",
    "') FROM read_text('{f}') --", "\") FROM read_text('{f}') --", "' OR 1=1 --", "' UNION SELECT * FROM kept --",
    "'||(SELECT content FROM read_text('{f}'))||'", "\\'; DROP TABLE kept; --", "$$; DROP TABLE kept; $$", "$text0",
    "$1", "?1", "%s", "%(name)s", "{0}", "{name}", "{0.__class__}", "{{}}", "${HOME}", "$(id)", "`id`", "a\x00b",
    "\x00", "\x1b[2J", "\x7f", "\r\n", "\u202egnirts", "\u2066a\u2069", "\ufeff", "\u200b", "a\u0301", "\u00e1",
    "\ud800",
    "\udfff\ud800", "\U0001f469\u200d\U0001f4bb", "\u0661\u0662", "\uff53\uff45\uff4c", "\u0430ge", "AGE", " age",
    "age ",
    "", " ", ".", "..", "/", "{f}", "file://{f}", "{u}", "kept", "c0", "person", "owner", "o", "t0", "text0",
    "data.kept",
    "main.kept", "rowid", "*", "COLUMNS(*)", "NULL", "null", "TRUE", "1", "1; SELECT 1", "1e999", "nan", "inf", "-0",
    "a" * 300, "a" * 100_000, "(" * 5_000, "'" * 999, '"' * 999, "%" * 999, "_%" * 500, "\\" * 999, "--", "/*", "*/",
)  # fmt: skip


def statements(outside: Outside) -> list[str]:
    """Whole texts put where a query belongs; all different."""
    found = [AROUND[0].replace("{t}", table) for table in TABLES]
    found += [AROUND[1 + i % (len(AROUND) - 1)].replace("{t}", table) for i, table in enumerate(TABLES)]
    found += [WITHIN[i % len(WITHIN)].replace("{e}", value) for i, value in enumerate(VALUES)]
    found += [WITHIN[(5 * i + 1) % len(WITHIN)].replace("{e}", value) for i, value in enumerate(VALUES)]
    found += STATEMENTS
    found += [form.replace("{s}", HUNG[i % len(HUNG)]) for i, form in enumerate(JOINED)]
    return list(dict.fromkeys(outside.filled(text) for text in found))


def texts(outside: Outside) -> list[str]:
    """Texts put where a name, a label or a literal belongs: fragments, and every statement too; all different."""
    return list(dict.fromkeys([*map(outside.filled, TEXTS), *statements(outside)]))
