"""What an agent may ask and do, over the Model Context Protocol: tools and resources on a client.

tool.py       what a tool is, and how it is called
asking.py     queries, and where their answers come from (`citing.py`)
looking.py    objects, status, quarantine, schemas
changing.py   what changes something, offered only when that is allowed
sizes.py      answers that fit into a conversation
resources.py  definitions and errors as documents
server.py     the protocol; the only module that needs the package `mcp`
"""
