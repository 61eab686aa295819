"""The routes of the REST interface, one file per noun."""
