"""Reads a workbook from stdin with openpyxl, and prints its first table as CSV, without totals."""
import csv
import io
import sys

import openpyxl

book = openpyxl.load_workbook(io.BytesIO(sys.stdin.buffer.read()))
assert book.sheetnames[0] == "About", book.sheetnames
sheet = book[book.sheetnames[1]]
last = int("".join(c for c in sheet.auto_filter.ref.rsplit(":", 1)[1] if c.isdigit()))
out = csv.writer(sys.stdout)
for row in sheet.iter_rows(max_row=last, values_only=True):
    out.writerow("" if cell is None else cell for cell in row)
