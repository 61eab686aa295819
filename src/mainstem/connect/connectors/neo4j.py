"""The sink connector `neo4j`: rows as nodes and relations of Neo4j."""

from __future__ import annotations

from mainstem.connect.spec import ConnectorSpec, Field, FieldKind, Role

SPEC = ConnectorSpec(
    name="neo4j",
    role=Role.SINK,
    doc="""Makes nodes and relations of Neo4j out of rows, by a Cypher statement, exactly once.

The statement is run for many rows at once: `UNWIND $rows AS row` is put before it, and `row` has
the columns. Values are parameters, never part of the text. Decimals come as texts. Which records
are in the graph is kept there, in nodes of the label `MainstemPosition`, and changes in the same
transaction: a record that comes again changes nothing. A constraint keeps these nodes apart; the
user needs the right to make it, or an administrator makes it before: `CREATE CONSTRAINT
mainstem_position IF NOT EXISTS FOR (p:MainstemPosition) REQUIRE p.id IS UNIQUE`. Make constraints
for the keys of your own nodes, too: they are what MERGE finds them by. Needs the package `neo4j`:
`pip install 'mainstem[neo4j]'`.""",
    fields=(
        Field(
            "url",
            FieldKind.URL,
            "Where Neo4j is: `neo4j://` or `bolt://`, with TLS `neo4j+s://` or `bolt+s://`.",
            "neo4j://graph.example.com:7687",
            required=True,
            place=True,
        ),
        Field("user", FieldKind.TEXT, "Who logs in.", "mainstem", default="neo4j"),
        Field(
            "password", FieldKind.TEXT, "The user's password.", "${env:NEO4J_PASSWORD}", secret=True
        ),
        Field(
            "database",
            FieldKind.TEXT,
            "The database, if it is not the one that the user begins with.",
            "shop",
            place=True,
        ),
        Field(
            "cypher",
            FieldKind.TEXT,
            "What a row becomes.",
            "MERGE (c:Customer {id: row.customer_id}) MERGE (o:Order {id: row.id}) "
            "SET o.total = row.total MERGE (c)-[:PLACED]->(o)",
            required=True,
        ),
        Field(
            "delete",
            FieldKind.TEXT,
            "Of a table: what a deleted row does; only its key says something.",
            "MATCH (o:Order {id: row.id}) DETACH DELETE o",
        ),
        Field(
            "key",
            FieldKind.NAMES,
            "Of a stream: of rows with one key that come together, only the last is used.",
            "order_id",
            place=True,
        ),
    ),
)
