"""Runs the SQL and the Python of a README on a folder of archives, and prints each answer."""
import json
import re
import sys

import duckdb

readme, folder = sys.argv[1:]
with open(readme) as f:
    blocks = re.findall(r"^```(sql|python)\n(.*?)^```$", f.read().replace("/srv/archive", folder), re.M | re.S)
db = duckdb.connect()
answers = []
for language, text in blocks:
    if language == "python":
        names = {}
        exec(text, names)
        answers.append({"columns": ["month", "user_id", "core_hours"], "rows": [[*key, n] for key, n in names["core_hours"].items()]})
        continue
    for statement in duckdb.extract_statements(text):
        answer = db.execute(statement)
        if statement.type == duckdb.StatementType.SELECT:
            answers.append({"columns": [c[0] for c in answer.description], "rows": answer.fetchall()})
json.dump(answers, sys.stdout)
