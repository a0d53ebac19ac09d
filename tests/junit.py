# SPDX-License-Identifier: MIT
"""Prints the cases of a ctest report for tests/run: pass, skip or fail, name, seconds, reason, tab-separated.
The output of a case that failed goes to case-<name>.log in the given folder."""
import pathlib
import sys
import xml.etree.ElementTree as xml

for case in xml.parse(sys.argv[1]).getroot().iter("testcase"):
    lines = [line.strip() for line in (case.findtext("system-out") or "").splitlines() if line.strip()]
    seconds = round(float(case.get("time") or 0))
    failure, skipped = case.find("failure"), case.find("skipped")
    if failure is not None or case.get("status") == "fail":
        message = failure.get("message") if failure is not None else ""
        pathlib.Path(sys.argv[2], f"case-{case.get('name')}.log").write_text(case.findtext("system-out") or "")
        print("fail", case.get("name"), seconds, message or "failed", sep="\t")
    elif skipped is not None or case.get("status") in ("notrun", "disabled"):
        print("skip" if skipped is not None and "SKIP_RETURN_CODE" in (skipped.get("message") or "") else "fail",
              case.get("name"), seconds, lines[-1] if lines else (skipped.get("message") if skipped is not None else "not run"),
              sep="\t")
    else:
        print("pass", case.get("name"), seconds, "", sep="\t")
